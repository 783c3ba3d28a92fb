// Package mysql has MySQL's migration files, for the packages that send the same. Others take them from package
// schema.
package mysql

import "embed"

// Files are those of this folder.
//
//go:embed *.sql
var Files embed.FS
