# Everything runs in .venv, which is made on first use and again whenever the pins change.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps

.PHONY: help demo test test-all browser lint release-check bench soak extras docs site screenshots pins clean

.venv/.ready: constraints.txt pyproject.toml hatch_build.py $(wildcard src/headwater/schedule/kernel/*.p*)
	$(PYTHON) -m venv .venv
	$(PIP) --require-hashes --requirement constraints.txt
	$(PIP) --no-build-isolation --editable .
	@touch $@

.venv/.ready-dev: .venv/.ready constraints-dev.txt
	$(PIP) --require-hashes --requirement constraints-dev.txt
	@touch $@

help:  ## this list
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

demo: .venv/.ready  ## collect from a built-in publisher and show the dashboard
	@$(BIN)/headwater demo

PYTEST = $(BIN)/python -m pytest -n auto --dist worksteal --ignore tests/browser

test: .venv/.ready-dev  ## the quick ring of tests, on SQLite and PostgreSQL: before every commit
	$(PYTEST) -m 'not slow and not release' $(ARGS)

test-all: .venv/.ready-dev  ## both rings: also chaos, other programs, the documents' examples, the browser
	HEADWATER_TEST_RING=all $(PYTEST) -m 'not release' $(ARGS)
	$(BIN)/python -m pytest tests/browser

browser: .venv/.ready-dev  ## the dashboard in a real browser; needs chromium
	$(BIN)/python -m pytest tests/browser $(ARGS)

release-check: .venv/.ready-dev  ## what only a release needs: every text in Chinese; lists what is missing
	$(BIN)/python -m pytest -q -m release $(ARGS)

lint: .venv/.ready-dev  ## style, types, import direction, plain words
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tests.words

bench: .venv/.ready-dev  ## every benchmark, one table of ratios and targets; ARGS=--quick for small sizes
	$(BIN)/python -m benchmarks $(ARGS)

bench-%: .venv/.ready-dev  ## one of them, for instance bench-parse
	$(BIN)/python -m benchmarks.$* $(ARGS)

SECONDS ?= 600
soak: .venv/.ready-dev  ## everything at once under load and faults, for SECONDS=600
	$(BIN)/python -m tests.soak --seconds $(SECONDS) $(ARGS)

extras: .venv/.ready-dev  ## the wheel and each extra in an empty environment; needs the package index
	$(BIN)/python -m tests.extras $(ARGS)

screenshots: .venv/.ready-dev  ## take the pictures of docs/ again; ARGS=all takes every page into .screenshots/
	$(BIN)/python -m docs.screenshots $(ARGS)

docs: .venv/.ready-dev  ## rewrite the parts of docs/ that are made from the code
	$(BIN)/python -m docs.generate

site: .venv/.ready-dev  ## the documents as a web site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

COMPILE = uv pip compile pyproject.toml --universal --generate-hashes --upgrade --no-annotate --no-header \
	--extra build

pins: pyproject.toml  ## refresh the pins (needs uv); they record names, versions and hashes only
	$(COMPILE) --output-file constraints.txt
	$(COMPILE) --extra dev --constraint constraints.txt --output-file constraints-dev.txt

clean:  ## remove what was installed and cached
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
