// Package mysql has MySQL's migration files, for the packages that send this SQL. Other packages use package schema.
package mysql

import "embed"

// Files has the files of this folder.
//
//go:embed *.sql
var Files embed.FS
