# Every folder with a go.mod is a module; what is said below holds for each.
MODULES := $(sort $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path '*/.*/*')))

.PHONY: help test lint bench suites cgo pgbouncer chromium

help: ## show this
	@sed -n 's/^\([a-z]*\):.* ## /\1	/p' Makefile

# The root module is built and tested without the workspace, as its users get it. The
# other modules mostly wait for their servers, so two are tested at a time.
test: cgo pgbouncer chromium ## test all modules with the race detector, on servers of their own
	GOWORK=off go build ./...
	GOWORK=off go test -race ./...
	SQLFENCE_REQUIRE_POSTGRES=1 SQLFENCE_REQUIRE_MYSQL=1 SQLFENCE_REQUIRE_PGBOUNCER=1 SQLFENCE_REQUIRE_BROWSER=1 \
	scripts/with-postgres scripts/with-mariadb sh -c \
		'printf "%s\n" $(filter-out .,$(MODULES)) newest | xargs -n 1 -P 2 scripts/test-module'

lint: cgo ## check formatting, correctness, dependencies
	scripts/lint $(MODULES)

bench: cgo ## measure; the output is made for benchstat
	@scripts/with-postgres sh -c 'cd bench && go test -run=NONE -bench=. -benchmem -count=6 ./...'

suites: cgo ## run the drivers' own tests through sqlfence; takes minutes
	scripts/driver-suites -write ../docs/compatibility.md

# The race detector and mattn/go-sqlite3 need cgo.
cgo:
	@echo '#include <stdlib.h>' | gcc -E - >/dev/null 2>&1 || scripts/apt-install gcc libc6-dev

# Tests start it themselves; it lies where only root looks.
pgbouncer:
	@PATH=$$PATH:/usr/sbin; command -v pgbouncer >/dev/null || scripts/install-pgbouncer

# The browser that looks at the pages of examples/invoice.
chromium:
	@command -v chromium >/dev/null || scripts/apt-install chromium
