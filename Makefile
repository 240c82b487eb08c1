# Needs Go, and nothing else for run and test; the rest says what it needs.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 60
TIME ?= 120
HOSTS ?= 2000
CRASHES ?= 100
SEEDS ?= 1 2 3
DOCS = postgresql-doc-15 sqlite3-doc apache2-doc python-django-doc

# One way to build for all targets: without C the index on disk takes a third less memory. The race detector wants C.
export CGO_ENABLED = 0

.PHONY: help scale run play test check static staticcheck race one-by-one house tikv generate bench fuzz sim crash chaos crawl corpus examples clients siege dist dist-test deploy-test versus

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

# The same as "urlserver demo", without what a demo does not need compiled.
run: ## crawl a made web through the daemon, on loopback, and show how it went
	@echo "Building; the first time this takes a minute or two." >&2
	@go run ./internal/demo/demo

play: ## the same again and again, until Ctrl-C, so that you can look at the dashboard
	@echo "Building; the first time this takes a minute or two." >&2
	@trap 'exit 0' INT; go run ./internal/demo/demo --play # go run itself ends with 1 when it is interrupted

# go test prints nothing for minutes while it compiles; testreport names the tests that were skipped, and fails as go test does.
REPORT = go run -C tools ./testreport

# Tests that run side by side in a package mostly wait. A third package fills two cores while the tests of others wait.
SIDE_BY_SIDE = -p 3 -parallel 4

# The packages whose tests take longest, which begin first, so that none of them runs alone at the end.
LONG = ./docindex/redis ./docindex/disk ./cmd/urlserver ./urlserver/httpapi ./urlserver ./crawlcontrol/kafka ./reservation/redis ./internal/chaos

test: ## all tests; ends with those that were skipped, and what they want installed
	@echo "Building and testing; the first time this takes ten to twenty minutes." >&2
	@go test -json $(SIDE_BY_SIDE) -timeout 40m $(LONG) ./... | $(REPORT)

# These start no goroutine (layers_test.go sees to most of them): the race detector has nothing to find there.
SERIAL = hostslots|leftover|urlserver/engine|internal/scope|internal/sim|docindex/internal/queuesched|internal/container/[a-z0-9]+|api/urlfrontier|api/reservation

# Long tests that drive one goroutine, or let only one of several run at a time.
ONE_BY_ONE = TestBudgets|TestTwin|TestClearingIsUnseen|TestExhaustive|TestWalkBites|TestWithoutMemory|TestHostileSitemaps

check: static race ## formatting, vet, staticcheck, tidiness, layers, race detector

static: ## what check finds without running anything
	@test -z "$$(gofmt -l .)" || { gofmt -d .; exit 1; }
	go vet ./...
	go vet -tags faults ./...
	@$(MAKE) --no-print-directory staticcheck
	go mod tidy -diff

staticcheck: ## what staticcheck alone finds
	go run $(STATICCHECK) ./...

# The only C is zstd's, which the index on disk uses. It compiles in half the time with -O1.
RACE = CGO_ENABLED=1 CGO_CFLAGS=-O1 go test -race -short

race: ## the tests that take no minutes, with the race detector
	$(RACE) $(SIDE_BY_SIDE) -timeout 40m -skip '^($(ONE_BY_ONE))$$' $$(go list $(LONG) ./... | grep -vE '^urlserver$$|/($(SERIAL))$$')

one-by-one: ## what race leaves out of the packages that need a Redis
	go test -short -timeout 30m -run '^($(ONE_BY_ONE))$$' ./reservation/redis ./docindex/redis

house: ## count what makes the code easy or hard to read: folders, fields, methods, long lines, words
	@go test . -run 'TestHouse$$' -v -count=1 | grep -v '^=== '

tikv: ## the same for reservation/tikv, a module of its own (wants etcd-server, and ../shared/servers/tikv.sh)
	cd reservation/tikv && go vet ./... && go run $(STATICCHECK) ./... && go mod tidy -diff
	cd reservation/tikv && go test ./...
	cd reservation/tikv && $(RACE) ./...

generate: ## the code made of api/*/*.proto (needs protobuf-compiler)
	@sh scripts/generate

bench: ## the numbers, in a table, each beside its target (about 10 minutes)
	go run ./internal/bench

versus: ## the work of a frontier alone, for the daemon and for queues of other crawlers, and a broad crawl with Scrapy (N=20000 URLs; wants PyPI, redis-server)
	@python3 scripts/versus $(N)

fuzz: ## fuzz every target, FUZZTIME seconds in all
	@sh scripts/fuzz $(FUZZTIME)

sim: ## the simulation: a day of crawling a seed (SEEDS="1 2 3"), a million documents among accidents, and the proof that its oracle bites
	@for seed in $(SEEDS); do go test ./internal/sim -run 'TestDay$$' -v -count=1 -timeout 30m -args -seed $$seed || exit 1; done
	go test ./internal/sim -run 'TestMillion$$' -v -count=1 -timeout 30m -args -seed $(firstword $(SEEDS))
	go test ./internal/sim -run 'TestAccidents$$' -v -count=1 -timeout 30m -args -seed $(firstword $(SEEDS))
	go test -tags faults ./internal/sim -run Mutations -count=1

crash: ## kill a process that works on an index on disk, CRASHES times, and look whether all it acknowledged is there
	CRASHES=$(CRASHES) go test ./docindex/disk -run 'TestCrash$$' -v -count=1 -timeout 30m

scale: ## an index on disk of HOSTS hosts with a URL each: memory, bytes on disk, first answers
	go test ./internal/bench -run 'TestScale$$' -v -count=1 -timeout 30m -args -scale $(HOSTS)

chaos: ## daemons that share reservations die, freeze and lose them for TIME seconds, with each store (SEED=1 repeats one; wants redis and etcd)
	go test ./internal/chaos -v -count=1 -timeout 60m -args -all -time $(TIME)s -hosts $(HOSTS) $(if $(SEED),-seed $(SEED))

crawl: ## crawl Debian's documentation packages, several thousand real pages (installs them)
	@sh scripts/crawl $(DOCS)

examples: ## run the examples and docs/recipes against daemons (Python with grpcio and grpcio-tools, curl)
	@sh scripts/examples

clients: ## try clients in other languages against the daemon (CLIENTS="java"; each says what it lacks)
	@sh scripts/clients $(CLIENTS)

corpus: ## parse the real robots.txt files that come with PyPI's protego (fetches them)
	@sh scripts/corpus

siege: ## a thousand hostile clients at every listener of daemon and hostreservation while a crawl runs: pace, memory, CPU time, and that each is cut (4 minutes)
	go test ./cmd/urlserver -run 'TestHostileClients' -count=1 -v -args -hostile 1000 -hostile-for 60s

dist: ## binaries, SBOMs, Debian package and OCI image into dist/ (ARCH=arm64; needs dpkg-deb)
	@sh scripts/dist dist $(ARCH)

deploy-test: ## lint the Helm chart, and hold what it makes against Kubernetes' schemas (builds helm; wants PyPI)
	@sh scripts/deploy-test

dist-test: ## what dist makes, tried: reproduced, installed, verified by systemd, run
	@sh scripts/dist-test
