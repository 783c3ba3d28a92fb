// Package sqlcstore holds the input from which sqlc generates packages. The tests create their tables from the same
// schemas.
package sqlcstore

import _ "embed"

//go:generate env CGO_ENABLED=0 GOWORK=off go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate

// The tables of the tests.
var (
	//go:embed schema_postgres.sql
	Postgres string
	//go:embed schema_sqlite.sql
	SQLite string
	//go:embed schema_mysql.sql
	MySQL string
)
