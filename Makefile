# make demo    records the training of a small Keras model and prints a summary
# make test    builds everything and runs all tests and checks
# Both work from a bare checkout on Debian 12; a second run fetches and builds nothing.

SHELL := /bin/bash
PYTHON ?= python3
JOBS ?= $(shell nproc)
export PYTHON
export VRAMSCOPE_BUILD := $(CURDIR)/build
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Where this is set, each import of TensorFlow and PyTorch compiles thousands of files anew.
unexport PYTHONDONTWRITEBYTECODE

stamps := .cache/stamps
python := .venv/bin/python
venvs := $(stamps)/venv $(stamps)/venv-tf218 $(stamps)/venv-tf216 $(stamps)/plots $(stamps)/prometheus $(stamps)/memory-viz
# TORCH=0 omits PyTorch, whose packages are a 3 GB download.
ifneq ($(TORCH),0)
venvs += $(stamps)/venv-torch
endif
# JAX=0 omits JAX: its CUDA plugins are a 730 MB download, its packages for the CPU one of 200 MB.
ifneq ($(JAX),0)
venvs += $(stamps)/jax-plugins $(stamps)/venv-jax
endif
export TORCH JAX

ifneq ($(words $(subst :, ,$(CURDIR))),1)
$(error "$(CURDIR)" has a space or a colon in it, and the dynamic loader accepts neither in the path of the library that records; move the checkout)
endif

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help build everything environments demo check test test-frameworks test-browser test-gpu bench presubmit bare pictures fuzz soak clean distclean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile
	@printf '%s\n' \
	  'make build       leaves build/vramscope and build/libvramscope_inject.so' \
	  'make check       what to run before each commit: format, layers, text, packages, generated files, C++ tests, golden files' \
	  'make test-frameworks, make test-browser      these tiers of make test alone' \
	  'make test-gpu    the tests that need an NVIDIA GPU' \
	  'make bench       measures, prints each number beside its budget, fails where one is exceeded' \
	  'make presubmit   what has to pass before a change is merged: all checks, clang-tidy on everything, sanitizers, make bare' \
	  'make bare        make demo and make test in a root of plain Debian 12 (BARE=demo: the demo alone; BARE=wheel: the wheel on Debian 11 and 13)' \
	  'make pictures    renews the pictures of the guide' \
	  'make fuzz        fuzzes every parser (FUZZ_SECONDS=60 for each)' \
	  'make soak        the long versions of the crash tests' \
	  'make clean       removes what was built; environments stay (make distclean removes those too)'

# --- what the machine needs -----------------------------------------------------------------------------------------------------

# packages-build is all that the program and the demo need; packages-test and packages-presubmit add to it.
$(stamps)/packages-%: tools/packages.txt
	@tools/setup.sh packages $*
	@mkdir -p $(@D) && touch $@

$(stamps)/venv-demo: tools/requirements/demo.txt | $(stamps)/packages-build
	@tools/setup.sh venv .venv $<
	@touch $@

$(stamps)/venv: tools/requirements/venv.txt $(stamps)/venv-demo | $(stamps)/packages-test
	@tools/setup.sh venv .venv $<
	@touch $@

$(stamps)/venv-%: tools/requirements/%.txt | $(stamps)/packages-test
	@tools/setup.sh venv .venv-$* $<
	@touch $@

$(stamps)/plots: tools/requirements/plots.txt | $(stamps)/venv
	@tools/setup.sh folder .cache/plots $<
	@touch $@

$(stamps)/jax-plugins: tools/requirements/jax-plugins.txt | $(stamps)/venv
	@tools/setup.sh plugins $<
	@touch $@

$(stamps)/prometheus: | $(stamps)/packages-test
	@tools/setup.sh unpacked prometheus
	@touch $@

$(stamps)/memory-viz: | $(stamps)/packages-test
	@tools/setup.sh memory_viz
	@touch $@

# Fetching waits for the network, unpacking for the disk: two at a time.
environments: | $(stamps)/packages-test
	@$(MAKE) -s --no-print-directory -j 2 $(venvs)

# --- build ----------------------------------------------------------------------------------------------------------------------

# Users of the program need neither the tests nor what they are built with.
build/CMakeCache.txt: CMakePresets.json | $(stamps)/packages-build
	@tools/progress.sh "configure" cmake --preset release -DVRAMSCOPE_TESTS=OFF
	@touch $@

# The user interface is embedded in the program, so it is built first.
ui_sources := $(shell find ui/src -type f) $(wildcard ui/*.ts ui/*.js ui/*.json ui/*.html) schema/answers/schema.json schema/rpc/schema.json tools/gen_rpc.py
# Not `npm ci`, which rejects a lock file that names only the packages of this platform.
$(stamps)/ui-modules: ui/package-lock.json | $(stamps)/packages-build
	@export PATH="$$(tools/setup.sh node):$$PATH" && tools/progress.sh "packages of the user interface" npm --prefix ui install --no-save --no-audit --no-fund
	@touch $@

$(stamps)/ui: $(ui_sources) $(stamps)/ui-modules
	@export PATH="$$(tools/setup.sh node):$$PATH" && tools/progress.sh "user interface" npm --prefix ui run build
	@touch $@

build: build/CMakeCache.txt $(stamps)/ui
	@tools/progress.sh "build" cmake --build build -j $(JOBS) --target vramscope vramscope_inject vramscope_tfops

# All packages first, in one go: whoever may not install them is told once, before anything is built.
everything: $(stamps)/packages-test build
	@grep -qx VRAMSCOPE_TESTS:BOOL=ON build/CMakeCache.txt || tools/progress.sh "configure the tests" cmake --preset release -DVRAMSCOPE_TESTS=ON
	@tools/progress.sh "build of the tests" cmake --build build -j $(JOBS)

# --- the two commands -----------------------------------------------------------------------------------------------------------

demo: build $(stamps)/venv-demo
	@tools/demo.sh

test: everything environments
	@$(python) tools/run_tests.py

# --- the others -----------------------------------------------------------------------------------------------------------------

check: everything $(stamps)/venv
	@$(python) tools/run_tests.py --tier check

test-frameworks: everything environments
	@$(python) tools/run_tests.py --tier frameworks

test-browser: everything $(stamps)/venv $(stamps)/memory-viz
	@$(python) tools/run_tests.py --tier browser

test-gpu: build
	@tools/test_gpu.sh

bench: everything $(stamps)/venv
	@$(python) bench/run.py

presubmit: $(stamps)/packages-presubmit everything environments
	@$(python) tools/run_tests.py --presubmit

# BARE: all (make demo, then make test), demo, or wheel (built here, installed and used in a root of another Debian).
BARE ?= all
bare: $(stamps)/packages-presubmit $(if $(filter demo,$(BARE)),,build)
	@tools/bare.sh "$(BARE)"

# The screenshots in the guide, taken by the browser tests from a real training run.
pictures: everything $(stamps)/venv
	@export PATH="$$(tools/setup.sh node):$$PATH" && VRAMSCOPE_PICTURES=$(CURDIR)/docs/guide/pictures npm --prefix ui run --silent e2e -- looks

FUZZ_SECONDS ?= 60
fuzz: | $(stamps)/packages-test
	@tools/fuzz.sh $(FUZZ_SECONDS)

soak: everything environments
	@$(python) -m pytest -m soak --timeout 7200 -n $(JOBS) --dist load tests

clean:
	rm -rf build build-* dist ui/dist $(stamps)/ui
distclean: clean
	rm -rf .cache .venv .venv-* ui/node_modules
