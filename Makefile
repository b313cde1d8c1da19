# Everything runs in .venv, which is made on first use and again whenever the pins change.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench bench-schedule docs pins clean

.venv/.ready: constraints.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: .venv/.ready  ## collect from a built-in publisher and show the dashboard
	$(BIN)/headwater demo

test: .venv/.ready  ## all tests, on SQLite and PostgreSQL
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

lint: .venv/.ready  ## style, types, import direction
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: .venv/.ready  ## every benchmark, as ratios
	$(BIN)/python -m benchmarks

bench-schedule: .venv/.ready  ## what scheduling a visit costs
	$(BIN)/python -m benchmarks.schedule

docs: .venv/.ready  ## rewrite the parts of docs/ that are made from the code
	$(BIN)/python -m docs.generate

pins: pyproject.toml  ## refresh constraints.txt (needs uv); it records names, versions and hashes only
	uv pip compile pyproject.toml --extra dev --universal --generate-hashes --upgrade \
		--no-annotate --no-header --no-emit-index-url --no-emit-find-links --output-file constraints.txt

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
