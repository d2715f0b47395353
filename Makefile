# Needs only Python 3.11 or newer and make; everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The real data beside a checkout, where there are some; tests that need them skip otherwise.
RECSYS_DATA ?= $(wildcard $(abspath ../shared/data))
export RECSYS_DATA

.PHONY: try evaluate app docs pages screenshots constraints test test-all test-browser test-torch test-lowest test-pythons check format clean

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

$(VENV)/package: pyproject.toml
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# Compares models on the embedded sample, then makes a list and says why its first item is there.
try: $(VENV)/package
	@mkdir -p build
	$(BIN)/recsys evaluate --dataset sample --model ease --model cf-komd --model popularity
	$(BIN)/recsys fit --dataset sample --model ease --out build/sample.recsys --quiet
	$(BIN)/recsys recommend --ranker build/sample.recsys --user u0001 -n 5
	$(BIN)/recsys explain --ranker build/sample.recsys --user u0001 --item m0256

evaluate: $(VENV)/installed
	$(BIN)/recsys evaluate

# A file goes to one process: what its tests compile is compiled once.
test: $(VENV)/installed
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-all: $(VENV)/installed
	$(BIN)/python -m pytest -n 2 -m 'slow or not slow'

# Playwright's own browsers are not used: the system's Chromium is.
test-browser: $(VENV)/installed
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
		|| (apt-get update -qq && apt-get install -y -qq chromium) >/dev/null 2>&1 \
		|| echo "no Chromium, and it could not be installed: install the package chromium"
	$(BIN)/python -m pytest -m browser tests/app

# The link predictors on PyTorch, in an environment of their own. One version, so that a CPU build that pip was told of is
# taken before a newer one with its gigabytes; where it cannot be installed, a line says so. One thread: such small networks
# wait for a second one longer than it saves them.
TORCH ?= torch==2.13.0
TORCH_VENV := .venv-torch
test-torch: $(VENV)/installed
	@test -e $(TORCH_VENV)/bin/python || $(PYTHON) -m venv $(TORCH_VENV)
	@$(TORCH_VENV)/bin/python -c "import pathlib, site; \
		pathlib.Path(site.getsitepackages()[0], 'others.pth').write_text('import site; site.addsitedir(%r)' % '$(shell \
		$(BIN)/python -c 'import site; print(site.getsitepackages()[0])' 2>/dev/null)')"
	@if ! $(TORCH_VENV)/bin/python -m pip install --quiet --only-binary :all: '$(TORCH)' >/dev/null 2>&1; then \
		echo "SKIPPED: $(TORCH) cannot be installed here, so the link predictors on PyTorch are not tested"; exit 0; fi; \
	OMP_NUM_THREADS=1 $(TORCH_VENV)/bin/python -m pytest -m torch tests/links && \
	OMP_NUM_THREADS=1 $(TORCH_VENV)/bin/python -m pytest -m "not slow and not torch" -k "pair-dnn or honfm" \
		tests/contract/test_rankers.py tests/contract/test_references.py tests/contract/test_implicit.py tests/rankers/test_base.py

# The lowest versions that pyproject.toml declares, in an environment of their own.
test-lowest:
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && $(PYTHON) tests/lowest.py "$$folder"

# A wheel in an environment of its own for each supported Python that is found.
test-pythons: $(VENV)/installed
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && $(BIN)/python -m tests.pythons "$$folder"

# The pages, without a network; a warning is an error.
docs: $(VENV)/installed
	$(BIN)/python docs/build.py

# Puts what commands and examples print now into the pages.
pages: $(VENV)/installed
	$(BIN)/python -W ignore -m tests.docs.pages

# The pictures of the app, of the app as it is; the system's Chromium draws them.
screenshots: $(VENV)/installed
	$(BIN)/python -m docs.generate.screenshots

# constraints.txt anew, at the newest versions there are.
constraints: $(VENV)/installed
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/python tests/constraints.py

app: $(VENV)/installed
	$(BIN)/recsys app

check: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(TORCH_VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
