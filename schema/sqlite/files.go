// Package sqlite has SQLite's migration files, for the packages that send this SQL. Other packages use package schema.
package sqlite

import "embed"

// Files has the files of this folder.
//
//go:embed *.sql
var Files embed.FS
