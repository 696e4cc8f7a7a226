# Two commands matter: `make demo` shows what this does, `make test` proves it.
# While at work: `make quick`, within a minute.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
UNITS := $(addprefix tests/,kernels core defenses attacks data tasks)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

CHECKS := types format lint layers security pinned audit
# Else every worker of every run compiles and rewrites each test file anew: 4 s of CPU each.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test coverage quick check $(CHECKS) lint-js fuzz thorough licences bench bench-engine clean

demo: $(VENV)/.installed-demo  ## Attack a federation and show what each defense makes of it
	$(BIN)/datadefense demo

test: check  ## Linters, types, layers and all tests
	$(BIN)/python -m pytest --numprocesses 3 --dist worksteal $(COVERAGE)

coverage:  ## The same, with a floor on branch coverage; tests take half as long again
	$(MAKE) test COVERAGE="--cov --cov-report=term:skip-covered"

quick: format lint layers  ## Format, lint, layers and the unit tests that take less than a second
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m 'not slow' $(UNITS)

check: $(VENV)/.installed-dev  ## Format, lint, types, import contracts, dependencies: side by side
	@$(MAKE) --no-print-directory --jobs 3 $(CHECKS)

$(CHECKS): $(VENV)/.installed-dev

types:
	$(BIN)/mypy

format:
	$(BIN)/ruff format --check .

lint:
	$(BIN)/ruff check .

layers:
	$(BIN)/lint-imports

security:
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml src

pinned:
	$(BIN)/python -m tests.dependencies check

audit:
	$(BIN)/python -m tests.dependencies audit

lint-js: $(VENV)/.installed-dev  ## Lint the report's scripts as the one that they are; needs Node
	$(BIN)/python -c 'from datadefense.report.page import _script; print(_script())' | \
	  npx --yes eslint@9.39.5 --config tests/report/eslint.config.mjs --stdin

fuzz: $(VENV)/.installed-dev  ## Send hostile things for FUZZ_SECONDS (600) from FUZZ_SEED (drawn)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.hostile.fuzz --submissions 100000

thorough: $(VENV)/.installed-dev  ## Tests of properties with 500 examples each, drawn anew
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m hypothesis

licences: $(VENV)/.installed-dev  ## List what is installed with it, and under which licences
	$(BIN)/python -m tests.dependencies licences

bench: $(VENV)/.installed-dev  ## Time every rule beside Flower's and the memory limit
	$(BIN)/python -m benchmarks.aggregation

bench-engine: $(VENV)/.installed-dev  ## Time the engine beside its ceiling, Flower's simulation and pfl
	$(BIN)/python -m benchmarks.engine $(if $(PFL_PYTHON),--pfl-python $(PFL_PYTHON))

clean:  ## Forget the virtual environment and all caches
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python >= 3.11 is needed: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-demo: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[demo]'
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[dev]'
	touch $@ $(VENV)/.installed-demo
