PYTHON ?= python3.11
BIN := .venv/bin
# One PyTorch for demo and checks; the package itself allows a range.
TORCH := torch==2.13.0
CORE := $(addprefix tests/,families rules ensemble measures backends support test_accuracy.py test_differentiation.py)

.PHONY: demo test test-adapters quick lint types docs bench dist clean
.DEFAULT_GOAL := demo

.venv/base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv || python3 -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[cli,fast]'
	touch $@

.venv/dev: .venv/base
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --editable '.[cli,fast,deep,sklearn,paper,scale,report,app,jax,export,docs,test]'
	touch $@

.venv/demo: .venv/base
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --editable '.[cli,fast,deep,report]'
	touch $@

## demo: train an ensemble on the paper's synthetic set and write demo/report.html
demo: .venv/demo
	$(BIN)/uqprism demo

## test: every check there is: lint, types, tests, documentation
test: lint types docs
	$(BIN)/python -m pytest -n 2 --dist worksteal

.venv-adapters/ready: pyproject.toml
	test -x .venv-adapters/bin/python || $(PYTHON) -m venv .venv-adapters || python3 -m venv .venv-adapters
	.venv-adapters/bin/python -m pip install --quiet $(TORCH)
	.venv-adapters/bin/python -m pip install --quiet $(TORCH) --editable '.[cli,fast,deep,sklearn,scale,report,jax,export,test,adapters]'
	# laplace-torch brings torchvision, which fails beside another build of PyTorch, and does without it.
	.venv-adapters/bin/python -m pip uninstall --quiet --yes torchvision
	touch $@

## test-adapters: the adapters with the real libraries, in an environment of its own; one thread each, since every library brings its own pool
test-adapters: .venv-adapters/ready
	OMP_NUM_THREADS=1 .venv-adapters/bin/python -m pytest -m 'libraries or not libraries' -n 2 --dist loadfile tests/adapters tests/serving

## quick: the core's tests alone, a few minutes
quick: .venv/dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow' $(CORE)

## lint: style, and that rooms import only from the floors below them
lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: .venv/dev
	$(BIN)/mypy

## docs: the documentation, with every warning an error
docs: .venv/dev
	$(BIN)/python docs/generate.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

.venv/bench: .venv/dev
	$(BIN)/python -m pip install --quiet $(TORCH) --editable '.[bench]'
	touch $@

## bench: time it against the alternatives, some ten minutes; writes benchmarks/RESULTS.md
bench: .venv/bench
	$(BIN)/python benchmarks/run.py

.venv/release: .venv/base
	$(BIN)/python -m pip install --quiet --editable '.[release]'
	touch $@

## dist: the wheel and the source distribution, checked, and the wheel tried in an environment of its own
dist: .venv/release
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/python release/try_wheel.py dist

clean:
	rm -rf dist .venv .venv-adapters site demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
