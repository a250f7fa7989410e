# Two commands do everything on a fresh machine with Python 3.11 or newer: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run demo test test-cluster check bench lock clean

run: $(READY)
	$(BIN)/pumice up --submit examples/job.yaml

demo: $(READY)
	$(BIN)/pumice up --submit examples/job.yaml --once --port 0

test: $(READY)
	$(BIN)/pytest -m "not nightly and not cluster"

# The tests that hold the engine to its rules, under coverage of branches.
ENGINE_TESTS := tests/cases tests/engine tests/model tests/framework tests/nodes_for_pods tests/plugins tests/topology tests/kube_scheduler tests/scenarios tests/properties tests/reading

check: $(READY)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
	$(BIN)/pytest -q tests/deploy
	$(BIN)/coverage erase && $(BIN)/coverage run -m pytest -m "not nightly" $(ENGINE_TESTS)
	$(BIN)/coverage combine -q && $(BIN)/coverage report --skip-covered --fail-under=100

test-cluster: $(READY)
	$(BIN)/pytest -m cluster tests/cluster

bench: $(READY)
	$(BIN)/python -m bench

lock: $(READY)
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile -q --generate-hashes --universal --python-version 3.11 --group dev pyproject.toml requirements/build.in -o requirements/dev.txt
	$(BIN)/uv pip compile -q --generate-hashes --universal --python-version 3.11 pyproject.toml -o requirements/run.txt

clean:
	rm -rf $(VENV)

$(READY): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q src
	@touch $@
