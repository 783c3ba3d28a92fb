# Every folder with a go.mod is a module. The targets cover all of them, but for test/dqlite, which only
# scripts/with-dqlite can compile.
MODULES := $(sort $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path '*/.*/*' -not -path './test/dqlite/*')))

.PHONY: help test test-all check lint bench proof suites applications ha tidb vitess dqlite versions sabotage cgo

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.* ## /\1	/p' Makefile

test: ## hold each promise on PostgreSQL, SQLite and MariaDB; lists first which servers it starts and which packages it installs
	@scripts/test

test-all: ## test everything: all modules, every driver, the newest PostgreSQL, longer and with more of the race detector
	@scripts/test all

check: cgo ## test without servers and race detector: SQLite and fakes only; about a minute of CPU
	@scripts/check

lint: cgo ## check formatting, correctness and dependencies
	scripts/lint $(MODULES)

bench: cgo ## measure everything in one run, about 20 minutes, and write docs/benchmarks.md; FLAGS= as go run ./test/bench -h says
	@command -v redis-server >/dev/null || scripts/apt-install redis-server || true
	@go run ./test/bench -out docs $(FLAGS)

proof: cgo ## try to break fences for an hour, sqlfence's first, and add what was found to docs/data/proof.md; FLAGS='-for 10m -seed 7'
	@command -v faketime >/dev/null || scripts/apt-install faketime || true
	cd test/proof && SQLFENCE_REQUIRE="postgres mysql" go test -count=1 -timeout 0 -v . -write ../../docs -for 1h $(FLAGS)

suites: cgo ## run the drivers' own tests through sqlfence; takes minutes
	scripts/driver-suites -write ../../docs/data/compatibility.md

applications: cgo ## run other people's programs' own tests through sqlfence, from the module proxy; FLAGS= as go run ./test/integration/extended/applications -h says
	scripts/with-postgres go run ./test/integration/extended/applications -out docs/data/applications.md $(FLAGS)

ha: cgo ## PostgreSQL with Patroni and etcd through 24 failovers a mode, about 20 minutes, and write docs/data/ha.md; needs Debian's patroni, python3-etcd, etcd-server and haproxy
	cd test/integration && SQLFENCE_REQUIRE=all \
		go test -count=1 -timeout 3h -run TestFailovers -v ./extended/ha -rounds 4

versions: cgo ## test the promises on other versions of the servers, fetched from Debian and npm, and write docs/data/servers.md; takes an hour; FLAGS= as go run ./test/integration/extended/versions -h says
	go run ./test/integration/extended/versions $(FLAGS)

sabotage: ## disable each keyword and condition of the reader, one at a time, and write docs/data/sabotage.md; takes an hour or two; FLAGS= as go run ./test/integration/extended/sabotage -h says
	nice go run ./test/integration/extended/sabotage $(FLAGS)

tidb: cgo ## test on TiDB, which is built once from its module (15 minutes of 2 cores); not a part of test-all
	cd test/integration && SQLFENCE_REQUIRE=tidb SQLFENCE_TIDB_ATTEMPTS=100000 ../../scripts/with-tidb \
		go test -timeout 2h -count 1 -v ./extended/tidb

vitess: cgo ## test on Vitess, whose vtcombo is built once from its module (10 minutes of 2 cores); not a part of test-all
	cd test/integration && SQLFENCE_REQUIRE=vitess SQLFENCE_VITESS_ATTEMPTS=50000 ../../scripts/with-vitess \
		go test -timeout 2h -count 1 -v ./extended/vitess

dqlite: cgo ## test on a dqlite of three nodes, which is built once from Debian's source (5 minutes of 2 cores); test-all has a shorter run
	cd test/dqlite && ../../scripts/with-dqlite go test -timeout 2h -count 1 -v . -dqlite-attempts 120000

# The race detector and mattn/go-sqlite3 need cgo.
cgo:
	@echo '#include <stdlib.h>' | gcc -E - >/dev/null 2>&1 || scripts/apt-install gcc libc6-dev
