# make demo    records the training of a small Keras model and sums it up
# make test    builds everything and runs all tests and checks
# Both work from a bare checkout on Debian 12 and Ubuntu 24.04; the second time nothing is fetched or built again.

SHELL := /bin/bash
PYTHON ?= python3
JOBS ?= $(shell nproc)
export PYTHON
export VRAMSCOPE_BUILD := $(CURDIR)/build
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export CCACHE_NOHASHDIR := 1

stamps := .cache/stamps
python := .venv/bin/python
venvs := $(stamps)/venv $(stamps)/venv-tf218 $(stamps)/venv-tf216
# TORCH=0 leaves PyTorch out: its packages are 3 GB to fetch.
ifneq ($(TORCH),0)
venvs += $(stamps)/venv-torch
endif
export TORCH

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help build everything environments demo test test-gpu bench presubmit pictures fuzz soak clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile
	@printf '%s\n' \
	  'make build       leaves build/vramscope and build/libvramscope_inject.so' \
	  'make test-gpu    the tests that need an NVIDIA GPU' \
	  'make bench       measures, prints each number beside its budget, fails where one is exceeded' \
	  'make presubmit   what has to pass before a change is merged: all checks, clang-tidy on everything, sanitizers' \
	  'make pictures    renews the pictures of the guide' \
	  'make fuzz        fuzzes every parser (FUZZ_SECONDS=60 for each)' \
	  'make soak        the long versions of the crash tests' \
	  'make clean       removes what was built; environments stay (make distclean removes those too)'

# --- what the machine needs -----------------------------------------------------------------------------------------------------

$(stamps)/packages: tools/packages.txt
	@tools/setup.sh packages
	@mkdir -p $(@D) && touch $@

$(stamps)/venv: tools/requirements/venv.txt | $(stamps)/packages
	@tools/setup.sh venv .venv $<
	@touch $@

$(stamps)/venv-%: tools/requirements/%.txt | $(stamps)/packages
	@tools/setup.sh venv .venv-$* $<
	@touch $@

# Fetching waits for the network, unpacking for the disk: two at a time.
environments: | $(stamps)/packages
	@$(MAKE) -s --no-print-directory -j 2 $(venvs)

# --- build ----------------------------------------------------------------------------------------------------------------------

build/CMakeCache.txt: CMakePresets.json | $(stamps)/packages
	@tools/progress.sh "configure" cmake --preset release
	@touch $@

# The user interface goes into the program as data, so it is made first.
ui_sources := $(wildcard ui/package.json)
ifneq ($(ui_sources),)
ui_sources += $(shell find ui/src -type f) $(wildcard ui/*.ts ui/*.js ui/*.json ui/*.html)
# Not `npm ci`: it refuses a lock file that names only the packages of this platform.
$(stamps)/ui-modules: ui/package-lock.json | $(stamps)/packages
	@export PATH="$$(tools/setup.sh node):$$PATH" && tools/progress.sh "packages of the user interface" npm --prefix ui install --no-save --no-audit --no-fund
	@touch $@

$(stamps)/ui: $(ui_sources) $(stamps)/ui-modules
	@export PATH="$$(tools/setup.sh node):$$PATH" && tools/progress.sh "user interface" npm --prefix ui run build
	@touch $@
build: $(stamps)/ui
endif

# Who wants to use it waits for the program alone, not for the tests.
build: build/CMakeCache.txt
	@tools/progress.sh "build" cmake --build build -j $(JOBS) --target vramscope vramscope_inject vramscope_tfops

everything: build
	@tools/progress.sh "build of the tests" cmake --build build -j $(JOBS)

# --- the two commands -----------------------------------------------------------------------------------------------------------

demo: build $(stamps)/venv
	@tools/demo.sh

test: everything environments
	@$(python) tools/run_tests.py

# --- the others -----------------------------------------------------------------------------------------------------------------

test-gpu: build
	@tools/test_gpu.sh

bench: everything $(stamps)/venv
	@$(python) bench/run.py

presubmit: everything environments
	@$(python) tools/run_tests.py --presubmit

# What the guide shows: taken by the browser tests from a real training.
pictures: everything $(stamps)/venv
	@export PATH="$$(tools/setup.sh node):$$PATH" && VRAMSCOPE_PICTURES=$(CURDIR)/docs/guide/pictures npm --prefix ui run --silent e2e -- looks

FUZZ_SECONDS ?= 60
fuzz: | $(stamps)/packages
	@tools/fuzz.sh $(FUZZ_SECONDS)

soak: everything environments
	@VRAMSCOPE_SOAK=1 $(python) -m pytest -m soak --timeout 7200 tests

.PHONY: distclean
clean:
	rm -rf build build-* dist ui/dist $(stamps)/ui
distclean: clean
	rm -rf .cache .venv .venv-* ui/node_modules
