// Package postgres has PostgreSQL's migration files, for the packages that send this SQL. Other packages use package
// schema.
package postgres

import "embed"

// Files has the files of this folder.
//
//go:embed *.sql
var Files embed.FS
