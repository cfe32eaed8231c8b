"""Serves a model file on loopback, prints the address, and ends when its standard input does.

A process of its own, because the server has no other end, and so that its parent's death is its own.
"""

from __future__ import annotations

import sys

import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.n_ctx = 4096
parameters.n_parallel = 1
parameters.n_predict = 96  # left alone it talks until its window is full: a minute of both cores
parameters.cpuparams.n_threads = 1  # others run beside it, and two threads would wait for each other at every step
parameters.warmup = False
parameters.verbosity = 0
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)  # noqa: T201 - this is how the parent learns it
sys.stdin.read()
