module github.com/sqlfence/sqlfence/test/proof

go 1.26.0

replace github.com/sqlfence/sqlfence => ../..

replace github.com/sqlfence/sqlfence/conformance => ../../conformance

replace github.com/sqlfence/sqlfence/contrib/fencehttp => ../../contrib/fencehttp

replace github.com/sqlfence/sqlfence/contrib/fenceotel => ../../contrib/fenceotel

replace github.com/sqlfence/sqlfence/fencepgx => ../../fencepgx

replace github.com/sqlfence/sqlfence/test/integration => ../integration

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/go-sql-driver/mysql v1.10.1
	github.com/jackc/pgx/v5 v5.12.0
	github.com/lib/pq v1.12.3
	github.com/mattn/go-sqlite3 v1.14.52
	github.com/sqlfence/sqlfence v0.0.0
	github.com/sqlfence/sqlfence/fencepgx v0.0.0-00010101000000-000000000000
	github.com/sqlfence/sqlfence/test/integration v0.0.0-00010101000000-000000000000
	modernc.org/sqlite v1.60.0
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/ngrok/sqlmw v0.0.0-20220520173518-97c9c04efc79 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	modernc.org/libc v1.77.1 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)
