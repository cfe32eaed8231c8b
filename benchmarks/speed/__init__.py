"""What `benchmarks/bench.py` measures, against what, and how it is told."""
