# One command for each thing; `make` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help

SWIFT ?= swift
FORMAT := $(SWIFT) format
SOURCES := Package.swift Sources Tests
# The targets that share memory between threads.
CONCURRENT := HotCacheTests|ReactorTests|TelemetryTests|GatewayTests|HTTP2Tests|FleetTests|ServerIdentityTests
# The targets that keep memory by hand.
UNSAFE := HotCacheTests|HTTP2Tests|GatewayTests
SECONDS_PER_TARGET ?= 30
# Of the spill table of bench-tokens; a million take 1.5 GB of disk for the time it runs.
TOKENS ?= 1000000
# With the runtime linked in: the machine it goes to has no Swift. Without the folder of the binary among those that libraries are
# looked for in. With the versions of packages that are committed. The same flags everywhere, so that nothing is built twice.
RELEASE := $(SWIFT) build -c release --static-swift-stdlib --disable-local-rpath --force-resolved-versions
PERFORMANCE := $(RELEASE) --package-path Tests/Performance --scratch-path .build/performance
BINARY := .build/release/cardea
PROMISES = python=$$(.ci/setup python); CARDEA_PYTHON=$$python $$python -m pytest -p no:cacheprovider Tests/Promises

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install what building and testing needs (as root; else the command to run)
	@.ci/setup test

.PHONY: build
build: ## debug build of everything
	@.ci/setup build
	$(SWIFT) build

.PHONY: release
release: ## the binary to install, .build/release/cardea, and its debug symbols beside it
	@.ci/setup build
	@$(MAKE) binary

# A build that linked nothing leaves a binary whose symbols are apart already.
.PHONY: binary
binary:
	$(RELEASE) --product cardea
	@if readelf --section-headers --wide $(BINARY) | grep -q ' \.debug_info '; then \
		objcopy --only-keep-debug $(BINARY) $(BINARY).debug; \
		objcopy --strip-debug --add-gnu-debuglink=$(BINARY).debug $(BINARY); \
	fi

.PHONY: test
test: setup ## all tests: Swift, thread and address sanitizer, budgets, then the promises against the real binary
	$(SWIFT) build
	$(SWIFT) test --parallel --quiet
	$(SWIFT) test --quiet --scratch-path .build/tsan --sanitize=thread --filter '$(CONCURRENT)'
	# Leaks are not looked for: the test runner has some of its own.
	ASAN_OPTIONS=detect_leaks=0 $(SWIFT) test --quiet --scratch-path .build/asan --sanitize=address --filter '$(UNSAFE)'
	$(SWIFT) test --quiet --scratch-path .build/budgets -c release -Xswiftc -enable-testing --filter Budgets
	@$(MAKE) binary
	python=$$(.ci/setup python); $$python -m pytest -p no:cacheprovider Tests/Budgets
	# One worker a core; a page stays with one worker, whose servers it shares. Pages that would disturb others come afterwards.
	$(PROMISES) -m 'not alone' --numprocesses auto --dist loadfile
	$(PROMISES) -m alone

.PHONY: fresh
fresh: ## README's two commands in a fresh Debian 12 that has the Swift toolchain and nothing else of this machine (as root)
	@.ci/setup fresh
	@.ci/fresh

.PHONY: house
house: ## modules, their rooms and which uses which, as text
	@$(SWIFT) test --quiet --filter HouseTests >/dev/null
	@cat .build/house.txt

# Written first, compared then: what is read back stands there only afterwards.
.PHONY: golden
golden: ## write Tests/Golden anew from what the code says now; look at the difference before it is committed. RECORD=1: stores and shared servers too
	@.ci/setup build
	$(SWIFT) build --build-tests
	-CARDEA_GOLDEN=write $(SWIFT) test --skip-build --quiet --filter Golden >.build/golden.log 2>&1
	$(SWIFT) test --skip-build --quiet --filter Golden
	@if [ -n "$(RECORD)" ]; then .ci/setup test; python=$$(.ci/setup python); CARDEA_PYTHON=$$python $$python Tests/Golden/record; fi

.PHONY: lint
lint: ## format and warnings, both strict
	$(FORMAT) lint --strict --recursive --parallel $(SOURCES)
	@.ci/setup build
	$(SWIFT) build --build-tests --scratch-path .build/lint -Xswiftc -warnings-as-errors

.PHONY: format
format: ## format every Swift file in place
	$(FORMAT) --in-place --recursive --parallel $(SOURCES)

.PHONY: bench
bench: ## Cardea beside nginx, HAProxy and Envoy, one core each; table, JSON and chart in Tests/Performance/results; QUICK=1: a minute; ROWS=scale: how it grows
	@.ci/setup bench
	@$(MAKE) binary
	$(PERFORMANCE) --product bare-relay
	@Tests/Performance/envoy .build/performance/envoy
	@Tests/Performance/bench $(if $(QUICK),--quick) --cardea "$$PWD/$(BINARY)" \
		--relay "$$PWD/.build/performance/release/bare-relay" $(if $(ROWS),--rows $(ROWS)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
		--envoy "$$PWD/.build/performance/envoy/envoy/_bin/envoy"

.PHONY: bench-tokens
bench-tokens: ## hits beside three other caches, evictions, a million spilled tokens, a million users through the gateway; tables, and JSON in Tests/Performance/results
	@.ci/setup bench
	@$(MAKE) binary
	$(PERFORMANCE) --product token-bench
	@Tests/Performance/tokens "$$PWD/.build/performance/release/token-bench" "$$PWD/$(BINARY)" $(TOKENS)

.PHONY: fuzz
fuzz: ## hostile bytes for every parser, SECONDS_PER_TARGET=30
	@.ci/setup build
	Tests/Fuzz/run $(SECONDS_PER_TARGET)

.PHONY: demo
demo: ## a legacy caller and Cardea before SYSTEM=oam_webgate, or another of Tests/Demo/stories; ONCE=1 ends after the measurements
	@.ci/setup demo
	@$(MAKE) binary
	$(RELEASE) --product cardea-lab
	@Tests/Demo/demo $(if $(SYSTEM),--system $(SYSTEM)) $(if $(ONCE),--once)

.PHONY: clean
clean: ## remove everything that was built
	rm -rf .build
