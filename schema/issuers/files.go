// Package issuers has the files that have a ledger record who takes a token, for the packages that send the same. Others
// take them from package schema.
package issuers

import "embed"

// Files has a folder for each database.
//
//go:embed */*.sql
var Files embed.FS
