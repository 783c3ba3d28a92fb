// Package issuers has the SQL files with which a ledger records who changes each token, for the packages that send this
// SQL. Other packages use package schema.
package issuers

import "embed"

// Files has a folder for each database.
//
//go:embed */*.sql
var Files embed.FS
