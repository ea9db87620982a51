# The commands of this project; `make help` lists them. Needs Python 3.11 or later and make, nothing else.
# What belongs here: how things are installed and started. What does not: what they do.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
# Each of them is a deployment of a dozen processes, whose programs have time limits: more at once starve each other.
E2E_JOBS ?= 1
# Extra arguments for pytest, and options of `up`: make unit ARGS="-k lease -x", make up ARGS="--port 0"
ARGS ?=

# Nothing here can reach a real AWS account by accident, whatever the caller's shell is logged in to.
unexport AWS_PROFILE AWS_SESSION_TOKEN AWS_ROLE_ARN AWS_WEB_IDENTITY_TOKEN_FILE AWS_ENDPOINT_URL
# Dozens of processes are started here: each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE
export AWS_ACCESS_KEY_ID := local
export AWS_SECRET_ACCESS_KEY := local
export AWS_DEFAULT_REGION := eu-central-1
export AWS_REGION := eu-central-1
export AWS_CONFIG_FILE := /dev/null
export AWS_SHARED_CREDENTIALS_FILE := /dev/null
export AWS_EC2_METADATA_DISABLED := true
export SAM_CLI_TELEMETRY := 0

TIERS := lint types unit rest runtime simulation contract handlers browser deploy e2e
# The files that take longest go first, so that the other processes do not wait for them in the end. While one process runs
# the first, another takes those that share the deployment `everything`, one after the other.
LONGEST := tests/cli/test_local_commands.py $(patsubst %,tests/e2e/test_%.py,events openapi running liveness)
# Found by their mark, so that none is forgotten; to collect all the others would cost each process as much as these do.
E2E_FILES = $(shell grep -rl --include='test_*.py' 'mark\.e2e' tests)
# Rooms of tests/ with a tier of their own; `rest` is all the others, so that none is forgotten.
OWN_TIER := core runtime simulation contract handlers browser deploy e2e
# Those that let every write meet every fate in `make soak`.
ALL_FATES = $(shell grep -rl --include='test_*.py' BATON_CRASH_POINTS tests)
# Those with so many sagas in one world that `make test` has fewer.
CROWDS = $(shell grep -rl --include='test_*.py' BATON_CROWDS tests)
# Those whose documents, entries and tables are drawn, by the settings of tests/core/build.py: `make soak` draws more of them.
DRAWN = $(shell grep -rlwE --include='test_*.py' 'PROPERTY|FEW|FEWEST|MORE' tests/core tests/builder)

.DEFAULT_GOAL := help
.PHONY: help demo failover up test core build dist pins bench peers trace load fuzz screenshots graphs failures soak conformance format clean install install-dev $(TIERS)
.NOTPARALLEL:

help:  ## this list
	@grep -hE '^[a-z][a-z0-9 -]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-12s %s\n", $$1, $$2}'

# ---- run it ------------------------------------------------------------------------------------------------

demo: install  ## run 20 dinner sagas on the local AWS, and a support desk in memory; kill workers on the way, print what happened
	@exec $(BIN)/baton demo
	@exec $(BIN)/python -m examples.support_desk

failover: install  ## a dinner for each fault of a service: which way it goes then, and whether the books are right
	@exec $(BIN)/baton failover

up: install  ## start the local AWS (Ctrl-C stops it); make up DATA=DIR keeps its sagas, ARGS="--port 0" gives options
	@exec $(BIN)/baton up $(if $(DATA),--data $(DATA)) $(ARGS)

# ---- check it ------------------------------------------------------------------------------------------------

test: install-dev  ## linters, types and every test
	@rm -rf build/test && mkdir -p build/test && $(BIN)/python .ci/test.py

lint: install-dev  ## ruff: rules and format
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check . && echo "ruff: no problems"

# The types of tests and benches take as long as all others, and running them shows most of what they would: `make soak` checks these, too.
TYPED := hatch_build.py layers/engine/baton layers/app functions examples
types: install-dev  ## mypy --strict; make types TYPED= checks the tests and benches, too
	@$(BIN)/mypy $(TYPED)

# $(call run,tier,arguments): quiet, and leaves its counts for the summary of `make test`.
run = $(BIN)/pytest -q --counts=build/test/$(1).json -o cache_dir=build/test/$(1).cache $(2) $(ARGS)
# The same with assertions as Python has them: to rewrite all of them takes a clean clone 20 seconds, for messages that only a
# failure needs. What has failed is run once more for its message; these tests fail again. None is tried twice, so the plugin for
# that is left out: it takes a quarter of a millisecond for each test.
FAILED = build/test/$(1).cache/v/cache/lastfailed
pytest = { rm -f $(FAILED); $(call run,$(1),--assert=plain -p no:rerunfailures $(2)) || { status=$$?; test ! -s $(FAILED) || \
	$(BIN)/pytest -q -o cache_dir=build/test/$(1).cache $(2) $(ARGS) -n 0 --no-cov --last-failed --last-failed-no-failures=none; exit $$status; }; }

unit: core runtime rest  ## core (every branch), then runtime, architecture and all other fast tests

core: install-dev  ## the pure core at 100 % branch coverage
	@mkdir -p build && { $(call pytest,core,-n $(JOBS) --dist worksteal --cov --cov-report= tests/core) || { $(BIN)/coverage report; exit 1; }; }

rest: install-dev
	@$(call pytest,rest,-n $(JOBS) -m "not e2e" tests $(OWN_TIER:%=--ignore=tests/%))

runtime: install-dev
	@$(call pytest,runtime,-n $(JOBS) -m "not e2e" tests/runtime)

simulation: install-dev  ## crashes, duplicates and reordering around every write, seeded
	@$(call pytest,simulation,-n $(JOBS) tests/simulation)

contract: install-dev  ## every port on memory, moto and the embedded AWS
	@$(call pytest,contract,-n $(JOBS) tests/contract)

handlers: install-dev  ## each function against the payloads in events/
	@$(call pytest,handlers,-n $(JOBS) tests/handlers)

# One browser for all of them, so never beside each other. Where it cannot be installed, they are skipped and say so.
browser: install-dev  ## the console in Debian's headless chromium, as a person would
	@mkdir -p build; command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || { echo "installing chromium …"; $(if $(shell command -v sudo),sudo -n) apt-get install -qq -y --no-install-recommends chromium-headless-shell; } >build/chromium.log 2>&1 || true
	@$(call run,browser,-n 0 tests/browser)

screenshots: install-dev  ## the pictures of docs/img
	@PYTHONPATH=layers/app $(BIN)/python -m tests.browser.screenshots

deploy: install-dev  ## template, permissions, layers
	@$(call pytest,deploy,-n $(JOBS) tests/deploy)

# Real deadlines and kills on a machine that may be busy: what fails is run once more, and the output names it.
e2e: install-dev  ## the whole deployment in processes of its own
	@$(call run,e2e,-n $(E2E_JOBS) --dist loadfile --no-loadscope-reorder -m e2e --reruns 1 -raR $(LONGEST) $(E2E_FILES))

fuzz: install-dev  ## the API against its OpenAPI document, at length: make fuzz EXAMPLES=100 SEED=7
	@BATON_SOAK=all BATON_FUZZ_EXAMPLES=$(or $(EXAMPLES),100) BATON_FUZZ_SEED=$(or $(SEED),1) $(BIN)/pytest -q tests/e2e/test_openapi.py

graphs: install-dev  ## random graphs against the interpreter, at length: make graphs EXAMPLES=100000 SEED=7
	@BATON_GRAPHS=$(or $(EXAMPLES),20000) BATON_GRAPHS_SEED=$(or $(SEED),2) $(BIN)/pytest -q -n auto tests/core/graphs/test_random_graphs.py tests/core/graphs/test_counted_on.py tests/core/graphs/test_patched.py

failures: install-dev  ## steps that fail at random in the simulation, at length: make failures EXAMPLES=1000
	@BATON_FAILURES=$(or $(EXAMPLES),200) $(BIN)/pytest -q -n $(JOBS) tests/simulation/test_failures.py

soak: install-dev  ## every fault at every write and the longest tests, then schedules for as long as you like: make soak SECONDS=600 SEED=7
	@$(BIN)/mypy
	@BATON_CRASH_POINTS=all $(BIN)/pytest -q -n $(JOBS) $(ALL_FATES)
	@BATON_EXAMPLES=35 $(BIN)/pytest -q -n $(JOBS) $(DRAWN)
	@BATON_GRAPHS=500 $(BIN)/pytest -q -n $(JOBS) tests/core/graphs
	@BATON_CROWDS=100000 $(BIN)/pytest -q $(CROWDS)
	@BATON_TRANSITIONS=all $(BIN)/pytest -q tests/docs/test_generated.py
	@BATON_SOAK=all $(BIN)/pytest -q -m soak tests
	@$(BIN)/python -m tests.kit.soak --seconds $(or $(SECONDS),60) --seed $(or $(SEED),1) --jobs $(JOBS)

# Its handlers are in the repository of AWS's SDK for Python, and in no package.
CONFORMANCE := build/conformance
HANDLERS ?= $(CONFORMANCE)/sdk/packages/aws-durable-execution-sdk-python-conformance-tests
conformance: install-dev  ## AWS's public suite for durable functions against baton.compat.aws_durable: make conformance HANDLERS=DIR
	@test -d $(CONFORMANCE)/suite || $(BIN)/python -m pip install --quiet --no-deps --ignore-requires-python \
		--target $(CONFORMANCE)/suite aws-durable-execution-conformance-tests==1.0.0
	@test -d $(HANDLERS) || git clone --quiet --depth 1 https://github.com/aws/aws-durable-execution-sdk-python $(CONFORMANCE)/sdk
	@$(BIN)/python -m tests.conformance.suite $(CONFORMANCE)/suite $(HANDLERS)

format: install-dev  ## let ruff mend what it can
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format .

# ---- measure it ------------------------------------------------------------------------------------------------

bench: install-dev  ## measure: all benches, or make bench BENCH=overhead; CHECK=1 fails on a missed target
	@$(BIN)/python -m benchmarks $(BENCH) $(if $(CHECK),--check)

PEERS := build/peers
peers: install-dev  ## a workflow function beside the same one in DBOS and in LangGraph, all in one run
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/pip install --quiet $$(grep -E '^(dbos|langgraph)==' constraints.txt)
	@$(BIN)/python -m benchmarks.peers compare $(PEERS)/bin/python

providers: install-dev  ## the forms of docs/models.md with the real providers whose keys are set: make providers ONLY="openai bedrock"
	@$(BIN)/python -m benchmarks.providers $(ONLY)

trace: install-dev  ## the files that a step, POST /sagas and a compilation enter, in order; WRITE=1 renews tests/architecture/trace.json
	@$(BIN)/python -m benchmarks.trace $(if $(WRITE),--write)

load: install-dev  ## starts a second on the local AWS, as far as it carries: make load RATE=200 SECONDS=60
	@$(BIN)/python -m benchmarks.ramp $(if $(RATE),--rate $(RATE)) $(if $(SECONDS),--seconds $(SECONDS))

# ---- build it --------------------------------------------------------------------------------------------------

# The layers' Makefiles take `python` from the path. COMPILE_WITH=none leaves the bytecode out: quicker, not to deploy.
build: install-dev  ## `sam build` for Lambda (arm64, python3.13), without docker, credentials or a Python 3.13
	@PATH="$(CURDIR)/$(BIN):$$PATH" MAKEFLAGS=--no-print-directory $(BIN)/sam build
	@$(BIN)/python -m baton.shipping sizes
	@$(BIN)/python -m baton.shipping.sam_local
	@echo "Before a deploy: $(BIN)/baton check --against URL names the open sagas that would stop with this code."

dist: install-dev  ## the wheel and its sources, into build/dist; nothing is fetched
	@rm -rf build/dist && $(BIN)/hatchling build -d build/dist && ls build/dist

# The exact versions that layers ship: a choice of constraints.txt, for Lambda's platform.
PINS := layers/engine/baton/shipping/requirements.txt
EXTRA_PINS := layers/engine/baton/shipping/requirements-extras.txt
COMPILE := $(BIN)/uv pip compile --quiet pyproject.toml -c constraints.txt --python $(BIN)/python --python-version 3.13 \
	--python-platform aarch64-manylinux_2_34 --no-header --no-annotate --no-emit-index-url --no-emit-package click
pins: install-dev  ## write the layers' versions anew, after a change of constraints.txt
	@{ echo "# What the engine layer ships. Made by: make $@"; $(COMPILE); } >$(PINS).new && mv $(PINS).new $(PINS)
	@{ echo "# What an application with all extras ships besides. Made by: make $@"; \
		$(COMPILE) --extra cel --extra langgraph --extra models --extra openai-agents --extra pydantic-ai --extra python | grep -vxFf $(PINS); } >$(EXTRA_PINS).new && mv $(EXTRA_PINS).new $(EXTRA_PINS)

# ---- install it --------------------------------------------------------------------------------------------------
# Stamps, so that nothing is installed twice until a dependency changes.
QUIETLY := --disable-pip-version-check --no-input install --quiet -c constraints.txt
PIP := $(BIN)/python -m pip $(QUIETLY)
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt
# $(call get,extra,options): uv takes seconds where pip takes a minute; pip also knows what only its own configuration says.
get = { { test -x $(BIN)/uv || $(PIP) uv; } && $(UV) $(2) -e '.[$(1)]' || $(PIP) -e '.[$(1)]'; } >$(LOG) 2>&1 || { cat $(LOG); exit 1; }
# The console's script for pages that renew themselves; without it, they do not.
HTMX := $(BIN)/python -m baton.shipping htmx || true
INSTALLED := $(VENV)/installed
# The extras that the dinner example needs.
RUNNING := local,cel,models,python
LOG := $(VENV)/install.log

install: $(INSTALLED)-local  ## what running needs, into .venv; `up` and `demo` do it by themselves
install-dev: $(INSTALLED)-dev  ## the same, and what the tests need

# uv installs pip in a moment. Python's own way takes as long as everything that running needs: it is used where Python has no pip.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Baton needs Python 3.11 or later; '$(PYTHON)' is: $$($(PYTHON) --version 2>&1 | head -n 1)."; \
		echo "To use another one: make PYTHON=python3.12 …"; exit 1; }
	@{ $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python $(QUIETLY) uv && $(UV) pip; } \
		>/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV) || { \
		echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu: apt install python3-venv"; exit 1; }

$(INSTALLED)-local: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing into $(VENV) …"
	@$(call get,$(RUNNING),--compile-bytecode)
	@$(HTMX)
	@touch $@

# What running needs is compiled, since a dozen processes import it at once. A module of the tools for tests is compiled by the
# first process that imports it.
$(INSTALLED)-dev: $(INSTALLED)-local
	@echo "installing the tools for tests …"
	@$(call get,dev)
	@touch $@

clean:  ## remove everything that was made here
	@rm -rf layers/engine/baton/console/static/htmx.min.js $(VENV) build .aws-sam .baton .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
