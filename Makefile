# Everything runs in .venv, made from the package's own metadata plus the pins
# of constraints.txt. PYTHON chooses the interpreter that makes it.
PYTHON ?= python3
BIN := .venv/bin
EXTRAS ?= dev,docs,timm,onnx,sklearn
PYTEST_WORKERS ?= 2

.PHONY: help env demo test test-slow lint bench docs clean

help:
	@echo "make demo   the main job on real data, ending in a report"
	@echo "make test   the whole suite"
	@echo "make lint   style, types and the contract between the rooms"
	@echo "make bench  every claim of speed, measured against its peer"
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

.venv/ready-bench: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	touch $@

docs: env
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/scene.py
	$(BIN)/python -m mkdocs build --strict

clean:
	rm -rf .venv build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -exec rm -rf {} +
