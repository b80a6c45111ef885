# One command for each thing; `make` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help

SWIFT ?= swift
FORMAT := $(SWIFT) format
SOURCES := Package.swift Sources Tests
# The tests of what is shared between threads.
CONCURRENT := HotCacheTests|ReactorTests|TelemetryTests|DataPathTests|KeepingTests|GatewayTests|HTTP2Tests|FleetTests|TLSTests.ServerIdentityTests
# The tests of what keeps memory by hand.
UNSAFE := HotCacheTests|HTTP2Tests|DataPathTests|KeepingTests|GatewayTests|AuditTests.UseTests
# Walks over every short sequence of events of a pure machine, which shares nothing and keeps no memory by hand: minutes under a sanitizer.
WALKS := PoolWalkTests
THREAD := --scratch-path .build/tsan --sanitize=thread
ADDRESS := --scratch-path .build/asan --sanitize=address
BUDGETS := --scratch-path .build/budgets -c release -Xswiftc -enable-testing
# Builds of tests that run at once: one alone does not use four cores all the time.
LANES ?= $(shell cores=$$(nproc); echo $$((cores < 4 ? 1 : cores < 8 ? 2 : 3)))
SECONDS_PER_TARGET ?= 30
# Of the spill table of bench-tokens; a million take 1.5 GB of disk for the time it runs.
TOKENS ?= 1000000
# With the runtime linked in: the machine it goes to has no Swift. Without the folder of the binary among those that libraries are
# looked for in. With the versions of packages that are committed. The same flags everywhere, so that nothing is built twice.
# The folder that it is built in is no part of the binary: paths begin with '.', and hashes of modules, which depend on it, are left out.
NO_FOLDER := -Xswiftc -file-prefix-map -Xswiftc $(CURDIR)=. -Xcc -ffile-prefix-map=$(CURDIR)=. -Xswiftc -Xfrontend -Xswiftc -disable-incremental-llvm-codegen
RELEASE := $(SWIFT) build -c release --static-swift-stdlib --disable-local-rpath --force-resolved-versions $(NO_FOLDER)
PERFORMANCE := $(RELEASE) --package-path Tests/Performance --scratch-path .build/performance
BINARY := .build/release/cardea
# What is installed: what was just built, or a PROGRAM of the same sources that stands somewhere.
PROGRAM ?= $(BINARY)
SHARE := .build/share
# Root has no Swift in its PATH, often. What its user has built is installed then.
BUILT_BEFORE := $(if $(filter $(BINARY),$(PROGRAM)),$(if $(shell command -v $(SWIFT)),binary papers))
PACKAGE := .build/package
PREFIX ?= /usr/local
# Which build the promises are tried on, and where it lies.
BUILD ?= debug
BUILT = .build/$(if $(filter checked,$(BUILD)),checked/release,$(if $(filter thread,$(BUILD)),tsan/release,$(BUILD)))
PROMISES = python=$$(.ci/setup python); CARDEA_BIN=$(BUILT)/cardea CARDEA_LAB_BIN=$(BUILT)/cardea-lab CARDEA_PYTHON=$$python \
	$$python -m pytest -p no:cacheprovider Tests/Promises
# How long gateways are soaked; 0.05 is a try of three minutes.
HOURS ?= 2
# A promise waits more than it works.
WORKERS ?= $(shell echo $$((2 * $$(nproc))))

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

.PHONY: binary
binary:
	$(RELEASE) --product cardea
	@deploy/apart $(BINARY)

.PHONY: install
install: $(BUILT_BEFORE) ## put everything below PREFIX=/usr/local (of DESTDIR=), and a first configuration into SYSCONFDIR=/etc where there is none
	@DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' SYSCONFDIR='$(SYSCONFDIR)' ZSH_FUNCTIONS='$(ZSH_FUNCTIONS)' deploy/install '$(PROGRAM)' $(SHARE)

.PHONY: size
size: binary ## what each part of the release binary takes, as a table (docs/design/size.md)
	@deploy/size '$(PROGRAM)'

.PHONY: package
package: $(BUILT_BEFORE) ## a Debian package for this machine's architecture, in .build/package
	@.ci/setup package
	@deploy/package '$(PROGRAM)' $(PACKAGE)

.PHONY: image
image: package ## a container image made of the package, without a shell, as an OCI layout and with an SBOM, in .build/image; SUITE=trixie, MIRROR=
	@.ci/setup image
	@deploy/image $(PACKAGE)/cardea_*.deb .build/image

# Each build of tests has a folder of its own, since its flags are its own. Of the package's tests it has those that it runs.
.PHONY: test
test: setup ## all tests: Swift, thread and address sanitizer, budgets, then the promises against the real binary; prints the seconds of each step
	@rm -f .build/steps
	@$(MAKE) -j$(LANES) --output-sync=target STEP_SAYS=3 test-swift test-thread test-budgets test-address test-binary 3>&1
	@.ci/step promises $(MAKE) promises-together
	@# Says the seconds of all steps before its own last line, which stays the last one.
	@CARDEA_STEPS=tell .ci/step 'promises that are tried alone' $(MAKE) promises-alone

.PHONY: promises
promises: setup ## every promise; BUILD=debug, release or checked: optimised, with exclusive access to memory checked everywhere
	@$(MAKE) build-$(BUILD)
	@$(MAKE) promises-together
	@$(MAKE) promises-alone

.PHONY: build-debug build-release build-checked build-thread
build-debug:
	$(SWIFT) build
build-release: binary
	$(RELEASE) --product cardea-lab
build-checked:
	CARDEA_EXCLUSIVITY=checked $(RELEASE) --scratch-path .build/checked --product cardea
	CARDEA_EXCLUSIVITY=checked $(RELEASE) --scratch-path .build/checked --product cardea-lab

# Optimised, since a fleet that is ten times slower than it has to be waits for itself. The library stays shared: what the sanitizer is
# told about locks (Tests/ThreadSanitizer) stands before it.
build-thread:
	CARDEA_SANITIZER=thread $(SWIFT) build $(THREAD) -c release --product cardea
	CARDEA_SANITIZER=thread $(SWIFT) build $(THREAD) -c release --product cardea-lab

# What the run says is held first to a history with a violation planted in it.
.PHONY: soak
soak: BUILD = release
soak: ## a fleet under faults for HOURS=2 (as root), its invariants checked afterwards, in .build/soak; SEED=, FAULTS='Kill Loss', BUILD=release, debug, checked or thread
	@.ci/setup soak
	@[ -n "$${CARDEA_BIN:-}" ] || $(MAKE) build-$(BUILD)
	@python=$$(.ci/setup python); $$python -m pytest -q -p no:cacheprovider Tests/Soak; \
		CARDEA_BIN=$${CARDEA_BIN:-$(BUILT)/cardea} CARDEA_LAB_BIN=$${CARDEA_LAB_BIN:-$(BUILT)/cardea-lab} $$python Tests/Soak/soak --hours $(HOURS) \
		$(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--only $(FAULTS))

# A worker goes on where another one has not begun yet, so that a long page does not end last; what the tests of a page share is made
# once a worker. Pages that would disturb others come afterwards.
.PHONY: promises-together promises-alone
promises-together:
	@$(PROMISES) -m 'not alone' --numprocesses $(WORKERS) --dist worksteal
promises-alone:
	@$(PROMISES) -m alone

.PHONY: test-one
test-one: ## the verdict of NAME alone: a module or room, a suite or test in Swift, a page of promises or one promise
	@.ci/setup build
	@.ci/test-one '$(NAME)'

.PHONY: test-swift
test-swift:
	@.ci/step 'debug build' $(SWIFT) build --build-tests
	@.ci/step 'Swift tests' $(SWIFT) test --skip-build --parallel --quiet

.PHONY: test-thread
test-thread:
	@.ci/step 'build, thread sanitizer' env CARDEA_TESTS='$(CONCURRENT)' $(SWIFT) build --build-tests $(THREAD)
	@.ci/step 'tests, thread sanitizer' env CARDEA_TESTS='$(CONCURRENT)' $(SWIFT) test --skip-build --quiet $(THREAD) --filter '$(CONCURRENT)' --skip '$(WALKS)'

# Leaks are not looked for: the test runner has some of its own.
.PHONY: test-address
test-address:
	@.ci/step 'build, address sanitizer' env CARDEA_TESTS='$(UNSAFE)|cardea-sim' $(SWIFT) build --build-tests $(ADDRESS)
	@.ci/step 'tests, address sanitizer' env ASAN_OPTIONS=detect_leaks=0 CARDEA_TESTS='$(UNSAFE)|cardea-sim' \
		$(SWIFT) test --skip-build --quiet $(ADDRESS) --filter '$(UNSAFE)' --skip '$(WALKS)'
	@.ci/step 'simulation, address sanitizer' env ASAN_OPTIONS=detect_leaks=0 \
		.build/asan/debug/cardea-sim --seed 2 --seeds 8 --seconds 5 --callers 8 --within 50

FRESH = $$((0x$$(git rev-parse --short=7 HEAD 2>/dev/null || echo 1000)))
.PHONY: test-budgets
test-budgets:
	@.ci/step 'build of the budgets' env CARDEA_TESTS=Budgets $(SWIFT) build --build-tests $(BUDGETS)
	@.ci/step 'budgets' env CARDEA_TESTS=Budgets $(SWIFT) test --skip-build --quiet $(BUDGETS) --filter Budgets
	@.ci/step 'build of the simulation' env CARDEA_TESTS=cardea-sim $(SWIFT) build $(BUDGETS) --product cardea-sim
	@# The same histories each time, then some that no commit before has had: those of a commit stay, so that its verdict does.
	@.ci/step 'simulation' .build/budgets/release/cardea-sim --seeds 24 --within 60
	@.ci/step 'simulation, fresh seeds' .build/budgets/release/cardea-sim --seed $(FRESH) --seeds 24 --within 40

.PHONY: test-binary
test-binary:
	@.ci/step 'release build' $(MAKE) binary
	@.ci/step 'budgets of the binary' bash -c 'python=$$(.ci/setup python); exec $$python -m pytest -p no:cacheprovider Tests/Budgets'

.PHONY: test-release
test-release: ## what is tried before a release: the package and its pages in new root file systems of Debian 12 and 13, the container image, Kubernetes' objects, the page in a browser (as root, minutes)
	@.ci/setup test-release
	@$(MAKE) build-release papers
	@python=$$(.ci/setup python); CARDEA_BIN=$(PROGRAM) CARDEA_LAB_BIN=$(dir $(PROGRAM))cardea-lab CARDEA_PYTHON=$$python $$python -m pytest -p no:cacheprovider Tests/Release

.PHONY: reproducible
reproducible: ## whether two builds of what is committed, in two folders, are the same binary as it is packaged; minutes of every core, diffoscope where they differ
	@.ci/setup reproducible
	@deploy/reproducible

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

# The commands are told by the program itself; everything else stands in tables of its modules.
REFERENCE = $(1)/cardea --experimental-dump-help >.build/commands.json && $(1)/cardea-reference $(2) --commands .build/commands.json
SHARE := .build/share
# The manual's date: that of the source, so that the same source makes the same page.
DATE = date -u -d "@$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || date +%s)}" +%F

.PHONY: reference
reference: ## write docs/reference anew from the code's own tables
	@.ci/setup build
	$(SWIFT) build --product cardea
	$(SWIFT) build --product cardea-reference
	$(call REFERENCE,.build/debug,pages) docs/reference

.PHONY: papers
papers: binary ## what is installed beside the binary, in .build/share: manual pages, completions for bash, zsh and fish, the schema
	$(RELEASE) --product cardea-reference
	@rm -rf $(SHARE) && mkdir -p $(SHARE)/man $(SHARE)/completions $(SHARE)/schema
	$(call REFERENCE,.build/release,manuals) --date "$$($(DATE))" $(SHARE)/man
	$(BINARY) --generate-completion-script bash >$(SHARE)/completions/cardea.bash
	$(BINARY) --generate-completion-script zsh >$(SHARE)/completions/_cardea
	$(BINARY) --generate-completion-script fish >$(SHARE)/completions/cardea.fish
	$(BINARY) schema >$(SHARE)/schema/schema.json

.PHONY: lint
lint: ## format and warnings, both strict; and whether the faults that the simulation looks for can be put back
	$(FORMAT) lint --strict --recursive --parallel $(SOURCES)
	@for fault in Tests/Simulation/faults/*.patch; do git apply --check $$fault || exit 1; done
	@.ci/setup build
	$(SWIFT) build --build-tests --scratch-path .build/lint -Xswiftc -warnings-as-errors
	@.ci/setup sim
	CARDEA_TESTS=cardea-sim $(SWIFT) build --scratch-path .build/lint -Xswiftc -warnings-as-errors --product cardea-sim

.PHONY: format
format: ## format every Swift file in place
	$(FORMAT) --in-place --recursive --parallel $(SOURCES)

.PHONY: bench
bench: ## Cardea beside nginx, HAProxy and Envoy, one core each; table, JSON and chart in Tests/Performance/results; QUICK=1: a minute; ROWS=scale: how it grows; BEFORE=binary: beside that build of it alone
	@.ci/setup bench
	@$(MAKE) binary
	$(PERFORMANCE) --product bare-relay
	@Tests/Performance/envoy .build/performance/envoy
	@Tests/Performance/bench $(if $(QUICK),--quick) --cardea "$$PWD/$(BINARY)" \
		--relay "$$PWD/.build/performance/release/bare-relay" $(if $(ROWS),--rows $(ROWS)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
		--envoy "$$PWD/.build/performance/envoy/envoy/_bin/envoy" $(if $(BEFORE),--before $(BEFORE) --rows $(or $(ROWS),abcdefgh))

.PHONY: bench-tokens
bench-tokens: ## hits beside three other caches, evictions, a million spilled tokens, a million users through the gateway; tables, and JSON in Tests/Performance/results
	@.ci/setup bench
	@$(MAKE) binary
	$(PERFORMANCE) --product token-bench
	@Tests/Performance/tokens "$$PWD/.build/performance/release/token-bench" "$$PWD/$(BINARY)" $(TOKENS)

.PHONY: fuzz
fuzz: ## hostile bytes for every parser, a whole data loop, every scheme and the fleet: runs and coverage of each, SECONDS_PER_TARGET=30; TARGETS="Loop Tier": these alone; BARE=1: twice as often, without the address sanitizer
	@.ci/setup build
	BARE='$(BARE)' Tests/Fuzz/run $(or $(SECONDS_PER_TARGET),30) $(TARGETS)

.PHONY: fuzz-keep
fuzz-keep: ## the inputs that `make fuzz` has found into Tests/Fuzz/corpora, as few as reach the same code; TARGETS="Loop Tier": of these alone
	@.ci/setup build
	Tests/Fuzz/keep $(TARGETS)

.PHONY: sim
sim: ## three whole gateways, what they call and who calls them, on one thread in virtual time: SEEDS=20 histories from SEED=1 on, judged by what is promised
	@.ci/setup sim
	CARDEA_TESTS=cardea-sim $(SWIFT) build $(BUDGETS) --product cardea-sim
	.build/budgets/release/cardea-sim --seed $(or $(SEED),1) --seeds $(or $(SEEDS),20)

.PHONY: coverage
coverage: ## how much of each module the Swift tests and SEEDS=4 histories of the simulation run, by region, and what none of them does, in .build/coverage; PROMISES=all: the promises, too
	@.ci/setup $(if $(PROMISES),test,sim)
	PROMISES='$(PROMISES)' Tests/Coverage/measure $(or $(SEEDS),4)

.PHONY: mutants
mutants: ## which small faults the tests of MODULE=Tokens do not find, all of them in one build; COUNT=300 drawn from SEED=1, COUNT=0: all; can be stopped and taken up again
	@.ci/setup build
	Tests/Mutants/try $(or $(MODULE),Tokens)

.PHONY: sim-finds
sim-finds: ## whether the simulation finds thirty faults that are put back one at a time; takes hours, can be stopped and taken up again; FAULTS="3 7": these alone
	@.ci/setup sim
	Tests/Simulation/faults/try $(FAULTS)

# Messages of each kind. A million requests and a million answers take half an hour on two cores.
N ?= 100000

.PHONY: differential
differential: build-release ## N=100000 generated requests and answers, read by six servers and four clients as by the gateway; SEED=the one that was printed: the same again
	@.ci/setup differential
	@python=$$(.ci/setup python); CARDEA_BIN=$(BINARY) CARDEA_LAB_BIN=$(dir $(BINARY))cardea-lab \
		$$python Tests/Differential/run.py $(if $(SEED),--seed $(SEED)) $(N)

.PHONY: demo
demo: ## a legacy caller and Cardea before SYSTEM=oam_webgate, or another of Tests/Demo/stories; ONCE=1 ends after the measurements
	@.ci/setup demo
	@$(MAKE) build-release
	@Tests/Demo/demo $(if $(SYSTEM),--system $(SYSTEM)) $(if $(ONCE),--once)

.PHONY: docs
docs: ## the documentation as a site, .build/docs/site; every link is checked before and afterwards; with pictures where Chromium and what was built are there
	@.ci/setup docs
	@.ci/docs/build

.PHONY: clean
clean: ## remove everything that was built
	rm -rf .build
