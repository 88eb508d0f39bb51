# Everything runs in a virtual environment outside this folder, one for each checkout.
PYTHON ?= python3
HERE := $(shell printf %s "$(CURDIR)" | cksum | cut -d' ' -f1)
VENV ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/vlmhb/dev-$(HERE)
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PROJECTS := pyproject.toml core/pyproject.toml $(wildcard plugins/*/pyproject.toml)
EDITABLE := -e core -e plugins/vlmhb-demo -e plugins/vlmhb-hf
export OMP_NUM_THREADS ?= 1

.PHONY: help venv demo test test-fast test-slow environments test-engines test-matrix test-all lint format bench clean

help:
	@echo "make demo       run the embedded model on the embedded documents"
	@echo "make test       every test that needs no engine but Hugging Face"
	@echo "make test-slow  the rest of them: memory limits, training, long worker faults"
	@echo "make test-fast  the pure logic, under a minute"
	@echo "make test-all   every engine, each in its own environment"
	@echo "make test-matrix  docs/compatibility.md once more: an hour or two"
	@echo "make lint       ruff and mypy;  make format  lets ruff rewrite"
	@echo "make bench      the benchmarks; writes docs/performance.md"
	@echo "make clean      remove the virtual environment ($(VENV))"

$(READY): $(PROJECTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python $(EDITABLE) --group pyproject.toml:dev
	@touch $(READY)

venv: $(READY)

demo: $(READY)
	$(BIN)/vlmhb demo

test: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow" tests/e2e tests/engines/hf tests/fast

test-slow: $(READY)
	$(BIN)/pytest -m slow tests/fast tests/e2e tests/engines/hf

test-fast: $(READY)
	$(BIN)/pytest tests/fast

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The tests of vLLM and SGLang run inside their managed environments; pytest, the demo pack and the twins of vlmhb-hf
# come in by PYTHONPATH, so that the environments stay as vlmhb made them. The reference answers come from the environment of hf.
ENGINES := hf vllm sglang
EXTRAS := $(VENV)/engine-tests
SOURCES := plugins/vlmhb-demo/src:plugins/vlmhb-hf/src
INSIDE = PYTHONPATH=$(EXTRAS):$(SOURCES) $(VLMHB_HOME)/environments/$$engine-cpu/bin/python -m pytest
export VLMHB_HOME ?= $(VENV)/home

environments: $(READY)
	for engine in $(ENGINES); do $(BIN)/vlmhb env create $$engine --device cpu || exit 1; done

$(EXTRAS): environments
	$(BIN)/uv pip install --quiet --python $(BIN)/python --target $(EXTRAS) --no-deps \
		pytest iniconfig pluggy packaging pygments psutil

test-engines: $(EXTRAS)
	for engine in vllm sglang; do $(INSIDE) -m "not matrix" tests/engines/$$engine || exit 1; done
	$(BIN)/pytest tests/engines/test_*.py

# Every cell of docs/compatibility.md again, an hour or two: a cell that has become worse fails.
test-matrix: $(EXTRAS)
	for engine in vllm sglang; do $(INSIDE) -m matrix tests/engines/$$engine || exit 1; done

test-all: test test-slow test-engines

bench: $(READY)
	$(BIN)/python benchmarks

clean:
	rm -rf $(VENV)
