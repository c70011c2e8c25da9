# `make` or `make help` lists what there is. Everything that CI does is one of these.

GO            ?= go
GOLANGCI_LINT ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK   ?= $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0

.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## bin/outboxd, one static binary
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/outboxd ./cmd/outboxd

test: ## THE tests: gets all servers, runs everything in its short form with -race, ends the servers
	scripts/with-servers scripts/run-tests

test-full: ## every count and duration whole, and PostgreSQL 18 too
	OUTBOXD_TEST_FULL=1 scripts/with-servers --full scripts/run-tests

test-unit: ## only what needs no server; the rest is skipped, and counted
	CI=false OUTBOXD_TEST_POSTGRES_URL= OUTBOXD_TEST_PGBOUNCER_URL= OUTBOXD_TEST_MYSQL_URL= OUTBOXD_TEST_MARIADB_URL= \
	  OUTBOXD_TEST_KAFKA_BROKERS= scripts/run-tests

slow: ## the bounds in seconds, outages and long runs, whole
	OUTBOXD_TEST_SLOW=1 OUTBOXD_TEST_FULL=1 scripts/with-servers scripts/run-tests

bench: ## rates, latencies, CPU and memory beside the barest loop
	scripts/with-servers $(GO) run ./integration/bench

mutants: ## takes one guard out at a time; a named test has to turn red
	scripts/with-servers mutants/run

lint: ## golangci-lint, and that go.mod is tidy
	$(GOLANGCI_LINT) run ./...
	$(GO) mod tidy -diff

fmt: ## formats as lint wants it
	$(GOLANGCI_LINT) fmt ./...

vet: ## go vet
	$(GO) vet ./...

vuln: ## known holes in what we use; needs the network
	$(GOVULNCHECK) ./...

.PHONY: help build test test-full test-unit slow bench mutants lint fmt vet vuln
