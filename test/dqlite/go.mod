module github.com/sqlfence/sqlfence/test/dqlite

go 1.26.0

replace github.com/sqlfence/sqlfence => ../..

replace github.com/sqlfence/sqlfence/conformance => ../../conformance

// scripts/with-dqlite makes this link.
replace github.com/canonical/go-dqlite/v3 => ./.go-dqlite

require (
	github.com/canonical/go-dqlite/v3 v3.0.4
	github.com/sqlfence/sqlfence v0.0.0
	github.com/sqlfence/sqlfence/conformance v0.0.0
)

require (
	github.com/Rican7/retry v0.3.1 // indirect
	github.com/google/renameio v1.0.1 // indirect
	github.com/mattn/go-sqlite3 v1.14.7 // indirect
	github.com/ngrok/sqlmw v0.0.0-20220520173518-97c9c04efc79 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	gopkg.in/yaml.v2 v2.4.0 // indirect
)
