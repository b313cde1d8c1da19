# Everything runs in .venv, which is made on first use and again whenever the pins change.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps

.PHONY: demo test browser lint bench docs screenshots pins clean

.venv/.ready: constraints.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) --require-hashes --requirement constraints.txt
	$(PIP) --no-build-isolation --editable .
	@touch $@

.venv/.ready-dev: .venv/.ready constraints-dev.txt
	$(PIP) --require-hashes --requirement constraints-dev.txt
	@touch $@

demo: .venv/.ready  ## collect from a built-in publisher and show the dashboard
	@$(BIN)/headwater demo

test: .venv/.ready-dev  ## all tests, on SQLite and PostgreSQL
	$(BIN)/python -m pytest -n auto --dist worksteal --ignore tests/browser $(ARGS)

browser: .venv/.ready-dev  ## the dashboard in a real browser; needs chromium
	$(BIN)/python -m pytest tests/browser $(ARGS)

lint: .venv/.ready-dev  ## style, types, import direction
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: .venv/.ready-dev  ## every benchmark, as ratios
	$(BIN)/python -m benchmarks

bench-%: .venv/.ready-dev  ## one of them, for instance bench-parse
	$(BIN)/python -m benchmarks.$* $(ARGS)

screenshots: .venv/.ready-dev  ## take the pictures of the dashboard again; needs chromium
	$(BIN)/python -m docs.screenshots

docs: .venv/.ready-dev  ## rewrite the parts of docs/ that are made from the code
	$(BIN)/python -m docs.generate

COMPILE = uv pip compile pyproject.toml --universal --generate-hashes --upgrade --no-annotate --no-header \
	--extra build

pins: pyproject.toml  ## refresh the pins (needs uv); they record names, versions and hashes only
	$(COMPILE) --output-file constraints.txt
	$(COMPILE) --extra dev --constraint constraints.txt --output-file constraints-dev.txt

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
