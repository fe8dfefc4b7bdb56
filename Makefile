# Each target sets up what it needs in .venv, once, from a bare python3.

PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python -m
PYTEST  = $(RUN) pytest -n auto --dist worksteal
ARGS   ?=
# Without long tests, but who names files gets all that is in them.
SOME    = $(if $(findstring tests/,$(ARGS)),,-m "not slow")

# Nothing of another environment may leak in.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all fuzz check docs format dev clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/ready-demo ## install the library with plots and viewer, and run `remora demo`
	@$(VENV)/bin/remora demo $(ARGS)

test: $(VENV)/ready-test ## run the tests but for long ones (ARGS="-k quaternion -n 0" for a part)
	@$(PYTEST) $(SOME) $(ARGS)

test-all: $(VENV)/ready-test ## run all tests, those of tests/long_tests.txt too
	@$(PYTEST) $(ARGS)

fuzz: $(VENV)/ready-test ## compare runs alone, in batches and campaigns (ARGS="--seed 7 --seconds 600")
	@$(VENV)/bin/python tests/fuzz.py $(ARGS)

check: $(VENV)/ready-check ## lint, format, types, import directions
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(RUN) pyright
	@$(VENV)/bin/lint-imports --no-logo

docs: $(VENV)/ready-docs ## build the pages into docs/_build/html, warnings are errors
	@$(RUN) sphinx -q -W --keep-going docs docs/_build/html
	@echo "docs/_build/html/index.html"

format: $(VENV)/ready-check ## format the code and apply the safe fixes
	@$(RUN) ruff check --fix-only -q .
	@$(RUN) ruff format .

dev: $(VENV)/ready-dev ## install everything, for an editor

clean: ## remove the environment, caches and built files
	rm -rf $(VENV) dist docs/_build .hypothesis .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# The set-up: one stamp for the environment and one for each set of packages in it.

INSTALL = $(RUN) pip install -qq --disable-pip-version-check -c constraints.txt

$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Remora needs Python 3.11 or later as '$(PYTHON)'; name another: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "setting up $(VENV) (first run only)"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/ready-%: $(VENV)/created pyproject.toml constraints.txt
	@echo "installing remora[$*] (a minute or two, the first time)"
	@$(INSTALL) -e '.[$*]'
	@touch $@ $(if $(filter dev,$*),$(foreach part,demo test check docs,$(VENV)/ready-$(part)))
