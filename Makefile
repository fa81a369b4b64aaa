# `make demo` and `make test` need nothing but Python 3.10 or later, git and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SITE_VENV := build/site-venv

.PHONY: help demo test lint types coverage check bench docs site clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/ -/'

$(VENV)/.package: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.installed: $(VENV)/.package
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev
	@touch $@

demo: $(VENV)/.package ## catch a regression in the bundled example
	@$(BIN)/python examples/quickstart/demo.py build/demo

test: $(VENV)/.installed ## run the tests
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.installed ## ruff: format and rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.installed ## mypy --strict on source and tests
	$(BIN)/mypy

coverage: $(VENV)/.installed ## the tests with branch coverage, at least 95 %
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 2
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

check: lint types coverage ## all that CI checks

bench: $(VENV)/.installed ## measure the promises on speed; half an hour, and 10 GB of disk
	$(BIN)/python benchmarks/bench.py --output docs/performance.md

docs: $(VENV)/.installed ## write the parts of the docs that the code knows
	$(BIN)/python docs/generate.py

# An environment of its own: MkDocs depends on platformdirs, which brings a pytest plugin into every test session.
$(SITE_VENV)/.installed: pyproject.toml $(VENV)/.package
	$(PYTHON) -m venv $(SITE_VENV)
	$(BIN)/python -m pip --python $(SITE_VENV) install --quiet --disable-pip-version-check --group docs
	@touch $@

site: $(SITE_VENV)/.installed ## build the documentation as a site, in build/site
	$(SITE_VENV)/bin/mkdocs build --strict

clean: ## remove what the other targets made
	rm -rf $(VENV) build dist .coverage*
