"""Embedders and language models."""

import os

# onnxruntime, which several embedders run on, reports to its maker over the network unless this is set
# when it is loaded, and Lamina promises that nothing leaves the machine. Whoever wants that sets it to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
