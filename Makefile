# make demo    build an environment with the core and show what it does
# make test    build the full environment; format, lint, types and all tests
# make lint    only format, lint and types
# make bench   install the peers and run the benchmarks
# make docs    write the generated pages again

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test lint bench docs clean

demo: $(VENV)/.core
	$(BIN)/dissensus demo

test: lint
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(VENV)/.core
	$(BIN)/python docs/generate.py

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/many_votes.py
	$(BIN)/python benchmarks/recovery.py

clean:
	rm -rf $(VENV) demo

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(VENV)/bin/python
	$(PIP) install -e .
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) install -c constraints-cpu.txt -e '.[dev]'
	touch $@

$(VENV)/.bench: pyproject.toml | $(VENV)/bin/python
	$(PIP) install -c constraints-cpu.txt -e '.[bench]'
	$(PIP) install --no-deps peerannot
	touch $@
