# What a person types. `make run` and `make test` work from a fresh clone on Debian and Ubuntu.

# Needed to build: a C compiler (for the linker and for cryptography) and what fetches Rust.
BUILD_PACKAGES := build-essential ca-certificates curl
# Needed to test: the servers that Zonda is compared with, and their tools.
TEST_PACKAGES := knot nsd bind9 pdns-server pdns-backend-bind pdns-backend-sqlite3 unbound dnsmasq-base dnsdist gdnsd \
	dnsperf knot-dnsutils knot-dnssecutils \
	ldnsutils bind9-dnsutils valgrind musl-tools python3 python3-venv procps chromium \
	redis-server postgresql openssl lego pebble etcd-server

# What programs may leave out of the library, and tests must not.
FEATURES := --features zonda/redis,zonda/postgres

# The compiler whose warnings are errors. A newer one knows lints that this code was never held to:
# it prints them and goes on, so that a fresh machine with the latest stable Rust can run every gate.
STRICT_WITH := 1.95
STRICTLY = $(if $(findstring rustc $(STRICT_WITH).,$(shell rustc --version)),-D warnings)

# Where `make run` listens.
ADDRESS := 127.0.0.1:5300

# rustup puts cargo here; a shell that was open before does not know yet.
# Where scripts/install-node puts Node.js, if the system's is too old, comes first.
export PATH := $(CURDIR)/target/node/bin:$(HOME)/.cargo/bin:$(PATH)
export CARGO_TERM_PROGRESS_WHEN := never
# Tests wait for peers and time-outs more than they compute.
export RUST_TEST_THREADS ?= $(shell expr 2 '*' `nproc`)

.NOTPARALLEL:
.PHONY: help run test test-full toolchain packages fmt clippy tidy deny unit doc instructions interop cluster node python wheel \
	test-cluster

help: ## Lists the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

run: toolchain ## Builds Zonda and serves examples/zones on 127.0.0.1:5300
	cargo run --release --bin zonda -- serve --listen $(ADDRESS) \
		$(foreach zone,$(wildcard examples/zones/*),--zone $(basename $(notdir $(zone)))=$(zone))

# Every gate, cheapest first, so that a mistake shows soon.
test: toolchain packages fmt clippy tidy deny unit doc instructions interop cluster node python ## Installs the peers and runs every gate
	@scripts/test-cluster --summary

test-full: test ## The gates, then a thousand kills of servers, ten minutes of changes of a cluster, and a long comparison with the peers and their speed (over two hours)
	TEST_ZONES=2000 cargo test --workspace $(FEATURES) --test '*' real_peers
	TEST_KILLS=1000 cargo test --workspace $(FEATURES) --test transfers kills::
	CLUSTER_CHURN_SECONDS=600 scripts/test-cluster --if-possible $(FEATURES)
	cargo build --release --bin zonda
	python3 bench/peers.py --workloads dino,erl-mix,erl-all,big --rounds 7 --json target/peers.json

toolchain: ## Installs a C compiler and Rust, if missing
	@command -v cc >/dev/null && command -v curl >/dev/null || scripts/install-packages $(BUILD_PACKAGES)
	@scripts/install-rust

packages: ## Installs the peers that the tests use, if missing
	@scripts/install-packages $(BUILD_PACKAGES) $(TEST_PACKAGES)

fmt: ## The code is formatted
	cargo fmt --all -- --check

# The second time, the library as programs have it that leave out all of its features.
clippy: ## The compiler and clippy have nothing to say
	cargo clippy --workspace --all-targets --locked $(FEATURES) -- $(STRICTLY)
	cargo clippy --package zonda --no-default-features --locked -- $(STRICTLY)

tidy: ## The rules of the house hold
	cargo xtask tidy

deny: ## The licences, sources and known faults of the crates that are used are acceptable
	scripts/install-cargo-deny
	scripts/check-dependencies

unit: ## Every test that needs no other server
	cargo test --workspace --locked $(FEATURES) -- --skip real_peers --skip real_cluster

# Private items are documented too, so links to them are fine. The library's pages are then made once
# more, as users see them: private items would show what they must not.
doc: ## The documentation builds without warnings, that of the library in its own words
	RUSTDOCFLAGS='$(STRICTLY) -A rustdoc::private-intra-doc-links' cargo doc --workspace $(FEATURES) --no-deps --document-private-items --quiet
	RUSTDOCFLAGS='$(STRICTLY)' cargo xtask public-docs

instructions: ## A query costs as many instructions as before
	cargo xtask instructions

interop: ## Every test that starts real peers
	cargo test --workspace --locked $(FEATURES) --test '*' real_peers

cluster: ## Every test that starts a real Kubernetes API server and CoreDNS, if they are there or Go is
	scripts/test-cluster --if-possible $(FEATURES)

test-cluster: toolchain packages ## The same tests; builds the API server and CoreDNS first, if missing
	scripts/test-cluster $(FEATURES)

node: ## The package for Node.js is built, packed, installed and tested
	scripts/install-node
	cd bindings/node && npm ci --no-audit --no-fund && npm run build && npm test

python: ## The Python package builds, installs into an empty environment and passes its tests
	scripts/python-package test

wheel: ## Builds the Python package as a release, into target/python/wheels
	@scripts/install-packages advancecomp
	scripts/python-package wheel
