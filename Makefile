# `make demo` and `make test` do all their own set-up. `uv` is used where it is there, pip otherwise.
# torch always comes by pip, first, at the version in constraints.txt: uv would fetch a CUDA build on a CPU machine.

PYTHON ?= python3
VENV ?= .venv
RUN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
PIP := $(if $(UV),$(UV) pip install --compile-bytecode --python $(RUN)/python,$(RUN)/python -m pip install --quiet --disable-pip-version-check)
TORCH := $(shell sed -n 's/^\(torch==[^ ;]*\).*/\1/p' constraints.txt)

# One thread per process: two trainers of two threads each on two cores are 120 times slower than two of one.
export OMP_NUM_THREADS ?= 1
export HF_HUB_OFFLINE = 1
export HF_HUB_DISABLE_TELEMETRY = 1
export TOKENIZERS_PARALLELISM = false
# Wherever they are switched off: tests start hundreds of programs, each of which would be compiled anew.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo demo-train test check format soak look clean

# FAST=1 plays a smaller round, in under two minutes; BY_HAND=1 launches nothing and leaves the night to your keys.
demo: $(VENV)/.demo
	@$(RUN)/kevtui demo $(if $(FAST),--fast) $(if $(BY_HAND),--by-hand)

demo-train: $(VENV)/.train
	@$(RUN)/python scripts/demo_train.py

test: check
	$(RUN)/python -m pytest

check: $(VENV)/.dev
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy
	$(RUN)/lint-imports --no-logo

format: $(VENV)/.dev
	$(RUN)/ruff format .
	$(RUN)/ruff check --fix .

soak: $(VENV)/.dev
	$(RUN)/python -m pytest -n 0 -m soak

look: $(VENV)/.dev
	$(RUN)/python benchmarks/look.py

clean:
	rm -rf $(VENV) build *.egg-info

$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.base: $(VENV)/.venv pyproject.toml constraints.txt
	$(PIP) -c constraints.txt -e .
	@touch $@

$(VENV)/.torch: $(VENV)/.venv constraints.txt
	$(RUN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)"
	@touch $@

$(VENV)/.demo: $(VENV)/.torch pyproject.toml constraints.txt
	$(PIP) -c constraints.txt -e '.[train,modal]'
	@touch $@ $(VENV)/.base

$(VENV)/.train: $(VENV)/.torch pyproject.toml constraints.txt
	$(PIP) -c constraints.txt -e '.[train]'
	@touch $@ $(VENV)/.base

$(VENV)/.dev: $(VENV)/.torch pyproject.toml constraints.txt
	$(PIP) -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.base
