# make demo    install and run the main job        make test   install and run the tests
# make check   format, lint, type-check, test      make slow   the checks that take minutes
# make bench   measure speed, memory and accuracy  make docs   rebuild generated docs
# make evidence  tables and figures of docs/evidence.md, from the records in results/
PYTHON ?= python3
BIN := .venv/bin
KERNEL := CMakeLists.txt $(wildcard src/balent/kernels/native/*)

.PHONY: demo test check format bench slow docs evidence

demo: .venv/installed
	$(BIN)/balent run digits

test: .venv/installed
	$(BIN)/python -m pytest -n auto -m "not slow"

check: format
	$(BIN)/mypy
	$(MAKE) test

format: .venv/installed
	$(BIN)/ruff format src tests benchmarks examples
	$(BIN)/ruff check --fix src tests benchmarks examples

slow: .venv/installed
	$(BIN)/python -m pytest -m slow

bench: .venv/installed
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/bench_moments.py
	$(BIN)/python benchmarks/bench_memory.py

docs: .venv/installed
	$(BIN)/python docs/build.py

evidence: .venv/installed
	$(BIN)/python docs/evidence.py

# Made once; again only when what it depends on changes. Sources in Python are used in place.
.venv/installed: pyproject.toml constraints.txt $(KERNEL)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@
