# Two commands do all the set-up: `make serve` and `make test`.

PYTHON ?= python3
BIN = .venv/bin
PIP = $(BIN)/pip install --quiet --disable-pip-version-check
MODEL = smollm2:135m
PACKAGES = config kernels models actors daemon

.PHONY: serve test dev check format docs clean

serve: build/installed
	$(BIN)/puma pull $(MODEL)
	$(BIN)/puma serve $(MODEL)

test: dev
	$(BIN)/pytest

dev: build/installed-dev

check: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: dev
	$(BIN)/python -m puma.config.document docs/configuration.md

clean:
	rm -rf .venv build *.egg-info

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Puma needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv

build/installed: pyproject.toml | $(BIN)/python
	$(PIP) --editable .
	@mkdir -p build && touch $@

# The links let a type checker and an editor see the folders as the package puma.
build/installed-dev: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[dev]'
	@mkdir -p build/typing/puma
	@for package in $(PACKAGES); do ln -sfn ../../../$$package build/typing/puma/$$package; done
	@touch build/installed build/installed-dev
