# Every folder with a go.mod is a module; what is said below holds for each.
MODULES := $(sort $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path '*/.*/*')))

.PHONY: help test lint bench suites cgo pgbouncer chromium

help: ## show this
	@sed -n 's/^\([a-z]*\):.* ## /\1	/p' Makefile

test: ## test all modules with the race detector; starts and installs what it needs, and says so first
	@scripts/test

check: cgo ## the quick part of it: no servers, only SQLite and fakes
	@scripts/check

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
