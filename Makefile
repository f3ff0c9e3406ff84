# Everything runs in .venv, made from the package's own metadata plus the pins
# of constraints.txt. PYTHON chooses the interpreter that makes it.
PYTHON ?= python3
BIN := .venv/bin
EXTRAS ?= dev,docs,timm,onnx,sklearn
PYTEST_WORKERS ?= 2

.PHONY: help env demo test test-slow test-lowest fuzz audit lint bench bench-check docs clean

help:
	@echo "make demo   the main job on real data, ending in a report"
	@echo "make test   the whole suite"
	@echo "make test-slow, test-lowest, fuzz, audit   what is run at night"
	@echo "make lint   style, types and the contract between the rooms"
	@echo "make bench  every claim of speed, measured against its peer"
	@echo "make bench-check  whether a ratio fell since benchmarks/baseline.json"
	@echo "make docs   write the documents that programs make, and build the site"

env: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]'
	touch $@

demo: env
	$(BIN)/python examples/demo.py --output demo

test: env
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS)

test-slow: env
	$(BIN)/python -m pytest -m slow

# The core with the lowest versions that pyproject.toml allows: its corruptions are the same to
# the byte, its tests pass. What the tests compare with is as new as it then can be.
LOWEST := .venv-lowest/bin
test-lowest:
	$(PYTHON) -m venv .venv-lowest
	$(LOWEST)/python -m pip install --quiet uv
	$(LOWEST)/uv pip compile --quiet --resolution lowest-direct pyproject.toml -o .venv-lowest/lowest.txt
	$(LOWEST)/uv pip install --quiet -p $(LOWEST)/python -r .venv-lowest/lowest.txt pytest hypothesis pandas polars scikit-image scikit-learn statsmodels
	$(LOWEST)/uv pip install --quiet -p $(LOWEST)/python --no-deps --editable .
	$(LOWEST)/python tests/corruptions/digests.py
	$(LOWEST)/python -m pytest -o filterwarnings=default tests/corruptions tests/metrics tests/published tests/results tests/settings

# A million cases; with atheris (on Linux) guided by coverage.
CASES ?= 1000000
fuzz: env
	-$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps atheris
	$(BIN)/python tests/fuzz/fuzz.py --cases $(CASES)

# Known vulnerabilities of the pinned versions. It fails too where a package could not be looked up.
audit:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet pip-audit
	.venv-audit/bin/pip-audit --strict --no-deps --disable-pip --requirement constraints.txt

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/ready-bench
	$(BIN)/python benchmarks/corruptions.py
	$(BIN)/python benchmarks/grid.py
	$(BIN)/python benchmarks/fits.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/augment.py
	$(BIN)/python benchmarks/attacks.py
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/storage.py

# Fails with a sentence for each ratio that is more than a quarter below the baseline's;
# benchmarks/ratios.py --write NAME keeps new ones.
bench-check: .venv/ready-bench
	$(BIN)/python benchmarks/ratios.py

.venv/ready-bench: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	touch $@

docs: env
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/scene.py
	$(BIN)/python -m mkdocs build --strict

clean:
	rm -rf .venv .venv-lowest .venv-audit build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -exec rm -rf {} +
