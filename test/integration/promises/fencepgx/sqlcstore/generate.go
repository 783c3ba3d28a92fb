// Package sqlcstore holds what sqlc generates a package for pgx/v5 from.
package sqlcstore

//go:generate env CGO_ENABLED=0 GOWORK=off go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate
