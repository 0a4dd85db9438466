# make lab     the guided notebook in JupyterLab, on the sample or on PATH_TO=recording
# make serve   the dashboard in Voila, on the sample or on PATH_TO=recording
# make test    everything that is checked: style, types, imports, wheel, tests
# make lint    the same without the tests
# make clean   remove the environment and all that was built
#
# The first call sets up .venv; later ones start at once.
# PYTHON=python3.12     another Python than the first that is new enough
# VENV=/path            another place for the environment
# ARGS="--port 9000"    further options for lab, serve or pytest

SHELL := /bin/bash
VENV ?= .venv
PATH_TO ?=
ARGS ?=
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check
PYTHON ?= $(shell .ci/find-python)
CHROMIUM ?= /usr/bin/chromium

.PHONY: lab serve test lint clean
.DELETE_ON_ERROR:

lab: $(VENV)/.notebook
	@$(BIN)/maiprof lab $(if $(PATH_TO),"$(PATH_TO)") $(ARGS)

serve: $(VENV)/.notebook
	@$(BIN)/maiprof serve $(if $(PATH_TO),"$(PATH_TO)") $(ARGS)

test: lint
	@test -x "$(CHROMIUM)" || echo "make: no Chromium at $(CHROMIUM), so the browser tests will be skipped; on Debian: apt-get install chromium libatomic1"
	CHROMIUM="$(CHROMIUM)" $(BIN)/python -m pytest -n auto $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf "$(VENV)" build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.python:
	@test -n "$(PYTHON)" || { .ci/find-python --explain; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: $(PYTHON) cannot make virtual environments; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "make: setting up $(VENV) with $(PYTHON)"
	@"$(PYTHON)" -m venv "$(VENV)"
	@$(INSTALL) --upgrade "pip>=25.1" # 25.1: --group
	@touch $@

$(VENV)/.notebook: $(VENV)/.python pyproject.toml
	@echo "make: installing the project and JupyterLab into $(VENV) (about 500 MB)"
	@$(INSTALL) --editable ".[notebook,collect]"
	@touch $@

$(VENV)/.dev: $(VENV)/.notebook pyproject.toml
	@echo "make: installing what the tests need, PyTorch above all (about 900 MB with its CPU build)"
	@$(INSTALL) --group dev
	@touch $@
