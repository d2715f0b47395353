# Needs only Python 3.11 or newer and make; everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The real data beside a checkout, where there are some; tests that need them skip otherwise.
RECSYS_DATA ?= $(wildcard $(abspath ../shared/data))
export RECSYS_DATA

.PHONY: evaluate test test-all check format clean

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

evaluate: $(VENV)/installed
	$(BIN)/recsys evaluate

test: $(VENV)/installed
	$(BIN)/python -m pytest -n 2

test-all: $(VENV)/installed
	$(BIN)/python -m pytest -n 2 -m 'slow or not slow'

check: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
