"""Running a model file on one thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import ProviderError

if TYPE_CHECKING:
    import onnxruntime

__all__ = ["onnx_session"]


def onnx_session(feature: str, content: bytes) -> onnxruntime.InferenceSession:
    """The model in this file's content.

    Raises:
        ProviderError: onnxruntime is missing, or cannot load it.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise ProviderError(feature, "onnxruntime is not installed", "Install Lamina's dependencies.") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # gives memory back after a long text
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the edge to native code, whose errors have no common base
        raise ProviderError(feature, f"onnxruntime cannot load it: {error}") from error
