# Every task of the project by one word. `make setup` is a step of the others, and costs next to
# nothing when the virtual environment already matches pyproject.toml and constraints.txt.

PYTHON := .venv/bin/python
STAMP := .venv/.installed
SOURCES := src tests bench scripts examples

.PHONY: setup run test test-long sim faults check fix bench docs constraints clean

SEEDS ?= 300
FAULT ?= all
ROUNDS ?= 5

# Compiled ahead, because an editable install leaves that to every first start, and to every start
# where PYTHONDONTWRITEBYTECODE is set; and the native codec, where there is a C compiler.
setup: $(STAMP)
	@$(PYTHON) -m compileall -q src/penstock src/pyspark_penstock || true
	@$(PYTHON) -m penstock.native.build || true

$(STAMP): pyproject.toml constraints.txt scripts/setup.sh
	@sh scripts/setup.sh

run: setup
	@$(PYTHON) scripts/run.py

test: setup
	@$(PYTHON) scripts/extras.py
	$(PYTHON) -m pytest -n 3 --dist loadfile -rfEs $(ARGS)

# A million fuzzed frames, more crash rounds: about an hour.
test-long: setup
	@$(PYTHON) scripts/extras.py
	PENSTOCK_LONG=1 $(PYTHON) -m pytest -n 2 --dist loadfile -rfEs --timeout 3600 $(ARGS)

# Whole clusters on a virtual clock, one run for each seed: make sim SEEDS=10000
sim: setup
	$(PYTHON) -m tests.simulation --seeds $(SEEDS) $(ARGS)

# Real brokers and ZooKeepers under kill -9, pauses, cuts, full disks: make faults FAULT=kill-leader
faults: setup
	@$(PYTHON) scripts/extras.py
	$(PYTHON) -m tests.faults --fault $(FAULT) --rounds $(ROUNDS) $(ARGS)

check: $(STAMP)
	.venv/bin/ruff format --check $(SOURCES)
	.venv/bin/ruff check $(SOURCES)
	.venv/bin/mypy
	.venv/bin/mypy --explicit-package-bases bench scripts tests/support
	.venv/bin/lint-imports
	$(PYTHON) -m pytest tests/tidy -p no:cacheprovider

fix: $(STAMP)
	.venv/bin/ruff check --fix $(SOURCES)
	.venv/bin/ruff format $(SOURCES)
	$(PYTHON) scripts/generate_docs.py

# Options go in ARGS, e.g. make bench ARGS="--rows produce,fetch --quick".
bench: setup
	@$(PYTHON) scripts/extras.py --only java
	$(PYTHON) -m bench $(ARGS)

docs: $(STAMP)
	$(PYTHON) scripts/generate_docs.py

constraints: $(STAMP)
	$(PYTHON) scripts/write_constraints.py

clean:
	rm -rf .venv .cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
