# Two commands do everything on a fresh machine with Python 3.11 or newer: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.run
DEV := $(VENV)/.dev
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
EDITABLE := $(PIP) --no-deps --no-build-isolation -e .

.PHONY: run demo quick test test-cluster test-image test-node test-page check nightly bench lock image dist docs clean

run: $(RUN)
	@echo "Starting a cluster, and in it examples/job.yaml ..."
	@$(BIN)/pumice up --conf examples/run.conf --submit examples/job.yaml

demo: $(RUN)
	$(BIN)/pumice up --submit examples/job.yaml --once --port 0

# As many processes as there are cores; whoever is done takes tests from another. Each would import the plugin of schemathesis.
PARALLEL := -n auto --dist worksteal -p no:schemathesis
# What pytest makes of the tests is kept for the next run, even where Python is told to keep nothing.
test quick check: export PYTHONDONTWRITEBYTECODE :=

test: $(DEV)
	$(BIN)/pytest $(PARALLEL) -m "not nightly and not cluster and not page and not image and not node"

LINT := $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

# For each save: the rules of engine and controllers, without cases, properties, servers and processes.
QUICK_TESTS := tests/controllers tests/docs tests/engine tests/framework tests/model tests/nodes_for_pods tests/plugins tests/topology

quick: $(DEV)
	$(LINT)
	$(BIN)/pytest $(PARALLEL) -m "not nightly" $(QUICK_TESTS)

# The tests that hold the engine to its rules, under coverage of branches.
ENGINE_TESTS := tests/answers tests/cases tests/engine tests/model tests/framework tests/nodes_for_pods tests/plugins tests/topology tests/kube_scheduler tests/scenarios tests/properties tests/reading tests/simulate

check: $(DEV)
	$(LINT)
	$(BIN)/coverage erase && PUMICE_TIMES=4 $(BIN)/coverage run -m pytest $(PARALLEL) -m "not nightly and not page" $(ENGINE_TESTS)
	$(BIN)/coverage combine -q && $(BIN)/coverage report --skip-covered --fail-under=100

test-cluster: $(DEV)
	$(BIN)/pytest -n 3 --dist worksteal -m cluster tests/cluster

# The image built by buildah, its programs started without network. As root, with Debian's packages; what is missing is told.
test-image: $(DEV)
	$(BIN)/pytest -m image tests/node

# The chart on a cluster of two real kubelets with containers. As root, with Debian's packages; what is missing is told.
test-node: $(DEV)
	$(BIN)/pytest -m node --durations=0 tests/node

# The page and reports in a real browser: Debian's package chromium. Screenshots are left in .screenshots.
test-page: $(DEV)
	$(BIN)/pytest $(PARALLEL) -m page tests/page

# Hours: the long tests, gangs under faults of every kind, and whether the tests notice faults in the code.
nightly: $(DEV)
	$(BIN)/pytest -m "nightly and not cluster and not page and not image and not node"
	PUMICE_TIMES=20 $(BIN)/pytest $(PARALLEL) -m "not nightly and not cluster and not page and not image and not node"
	$(BIN)/python -m bench.soak
	$(BIN)/python -m bench.mutants

bench: $(DEV)
	$(BIN)/python -m bench

lock: $(DEV)
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile -q --generate-hashes --universal --python-version 3.11 --group dev pyproject.toml requirements/build.in -o requirements/dev.txt
	$(BIN)/uv pip compile -q --generate-hashes --universal --python-version 3.11 pyproject.toml -o requirements/run.txt
	$(BIN)/uv pip compile -q --generate-hashes --universal --python-version 3.11 requirements/build.in -c requirements/dev.txt -o requirements/build.txt
	$(BIN)/uv pip compile -q --generate-hashes --universal --python-version 3.11 requirements/docs.in -o requirements/docs.txt

# The images, of a base by digest (see deploy/Dockerfile), with whichever builder is there: make image BASE=python@sha256:...
ENGINE ?= $(firstword $(foreach each,buildah podman docker,$(if $(shell command -v $(each)),$(each))))
IMAGE ?= pumice/pumice
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
BUILD = $(ENGINE) $(ENGINE_FLAGS) build --file deploy/Dockerfile --build-arg PYTHON=$(BASE)

image:
	@test -n "$(BASE)" || { echo "which base? make image BASE=python@sha256:..." >&2; exit 2; }
	@test -n "$(ENGINE)" || { echo "there is neither buildah nor podman nor docker here" >&2; exit 2; }
	$(BUILD) --target pumice --tag $(IMAGE):$(VERSION) .
	$(BUILD) --target scheduler --tag $(IMAGE)-scheduler:$(VERSION) .
	$(BUILD) --target controllers --tag $(IMAGE)-controllers:$(VERSION) .
	$(BUILD) --target webhooks --tag $(IMAGE)-webhooks:$(VERSION) .

# What a release consists of, in dist (docs/releases.md). URL: where the files will be, for krew's manifest.
dist: $(RUN)
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python deploy/dist.py dist $(URL)

# The documents as a site that needs no network, in build/site.
DOCS := $(VENV)/docs

docs: $(RUN) $(DOCS)/.done
	$(BIN)/python deploy/pages.py build/pages
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict

$(DOCS)/.done: requirements/docs.txt | $(BIN)/python
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

clean:
	rm -rf $(VENV)

$(BIN)/python:
	@echo "Making a virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

# What running needs, and no more.
$(RUN): requirements/run.txt requirements/build.txt pyproject.toml | $(BIN)/python
	@echo "Installing what running needs into $(VENV): numpy, msgspec, cryptography, click, PyYAML ..."
	@$(PIP) --no-compile --require-hashes -r requirements/run.txt -r requirements/build.txt
	@echo "Installing pumice into $(VENV) ..."
	@$(EDITABLE)
	@touch $@

# That, and the tools of the tests.
$(DEV): requirements/dev.txt pyproject.toml | $(BIN)/python
	@echo "Installing the tools of the tests into $(VENV), some 400 MB; that takes a minute or two ..."
	@$(PIP) --require-hashes -r requirements/dev.txt
	@$(EDITABLE)
	@$(BIN)/python -m compileall -q src
	@touch $(RUN) $@
