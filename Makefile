# Every target does its own set-up; it needs Python 3.11 or newer, make and git, nothing else.

.DEFAULT_GOAL := help
.PHONY: help setup demo docs check test proof bench bench-engine bench-media bench-server lock clean

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCKED := $(VENV)/.locked
BROWSER := $(VENV)/browser/installed
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input
# Tests start hundreds of processes and rewrite their own asserts: what Python has compiled is kept, also where the
# environment says otherwise.
export PYTHONDONTWRITEBYTECODE :=
# How many files of tests are run side by side.
AT_ONCE ?= 4
# Where to look for an interpreter; `make setup PYTHON=/path/to/python` overrides it.
PYTHON ?=
PYTHONS := $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY)  ## Create .venv with the locked packages and Telecine itself

demo: $(READY)  ## Run the worked example with live progress
	@$(BIN)/python -m examples.demo

docs: $(READY)  ## Build docs/ as a site in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

check: $(READY)  ## Format, lint, types, floors and unit tests: under a minute
	@$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --diff --quiet . | head -40; echo "Run $(BIN)/ruff format."; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m pytest tests/unit

test: check $(BROWSER)  ## check, then every other test, on SQLite and on PostgreSQL
	@# Films keep the cores busy, the rest mostly waits: more files at once than there are cores take less time.
	@$(BIN)/python -m pytest tests --ignore tests/unit -n $(AT_ONCE) --dist loadfile --no-loadscope-reorder

proof: $(READY)  ## The long tests: every mutant, kill loops, millions of rows
	@$(BIN)/python -m pytest proof

bench: bench-engine bench-media bench-server  ## Every benchmark

bench-engine: $(READY)  ## Measure the engine beside its peers; QUICK=1 for the short run
	@$(BIN)/python -m benchmarks.engine $(if $(QUICK),--quick)

bench-media: $(READY)  ## Measure encoding beside FFmpeg itself; QUICK=1 for the short run
	@$(BIN)/python -m benchmarks.media $(if $(QUICK),--quick)

bench-server: $(READY)  ## Measure the server beside a hand-written one, under a fleet and a crowd; QUICK=1 for the short run
	@$(BIN)/python -m benchmarks.server $(if $(QUICK),--quick)

lock: $(READY)  ## Resolve the dependencies anew into requirements/; UPGRADE=1 takes the newest
	@echo "Locking dependencies"
	@$(BIN)/uv --no-config pip compile --quiet $(if $(UPGRADE),--upgrade) pyproject.toml --group dev \
		--universal --python-version 3.11 --no-emit-index-url --generate-hashes \
		--custom-compile-command "make lock" --output-file requirements/dev.lock >/dev/null
	@# Parts of it, for images: what runs, and what builds the package.
	@$(BIN)/uv --no-config pip compile --quiet pyproject.toml --extra tracing --constraint requirements/dev.lock \
		--universal --python-version 3.11 --no-emit-index-url --generate-hashes \
		--custom-compile-command "make lock" --output-file requirements/runtime.lock >/dev/null
	@echo hatchling | $(BIN)/uv --no-config pip compile --quiet - --constraint requirements/dev.lock \
		--universal --python-version 3.11 --no-emit-index-url --generate-hashes \
		--custom-compile-command "make lock" --output-file requirements/build.lock >/dev/null

clean:  ## Remove .venv and all caches
	@rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@for python in $(PYTHONS); do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "Setup 1 of 3: creating $(VENV) with $$("$$python" --version)"; \
			exec "$$python" -m venv $(VENV); \
		fi; \
	done; \
	echo "Telecine needs Python 3.11 or newer, and none was found: install one, or name it with PYTHON=..." >&2; \
	exit 1

$(LOCKED): requirements/dev.lock | $(BIN)/python
	@echo "Setup 2 of 3: installing $$(grep -c '^[a-z].*==' $<) locked packages: about 300 MB to fetch, 1 GB on disk; takes some minutes"
	@$(PIP) --require-hashes -r requirements/dev.lock
	@touch $@

$(READY): pyproject.toml $(LOCKED)
	@echo "Setup 3 of 3: installing Telecine itself"
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(BROWSER): tests/browser/package-lock.json $(READY)
	@echo "Installing the browser for tests"
	@$(BIN)/python -m tests.browser.rig
	@touch $@
