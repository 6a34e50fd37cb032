# `make demo`, `make test` and `make docs` install first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

.PHONY: install test docs demo bench soak wheel clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]' -c constraints.txt
	touch $@

test: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest

docs: install
	$(BIN)/zensical build --strict --clean

demo: install
	$(BIN)/python -m reproduction.demo

ifneq ($(wildcard benchmarks/compare.py),)
bench: install
	$(BIN)/python -m benchmarks.compare --out build/bench.json
endif

soak: install
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m reliability.soak

wheel: install
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w dist .

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache \
		.import_linter_cache .cache
