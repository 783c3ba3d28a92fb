// Package postgres has PostgreSQL's migration files, for the packages that send the same. Others take them from package
// schema.
package postgres

import "embed"

// Files are those of this folder.
//
//go:embed *.sql
var Files embed.FS
