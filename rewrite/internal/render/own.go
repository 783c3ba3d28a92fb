package render

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// The tables that sqlfence's packages keep, in any schema. Another client that wrote to
// one, or put another one before it, could make an outdated token pass.
var OwnTables = sqltext.OwnTables

// IsOwnTable reports whether a table, by its normalised name, is one of these.
func IsOwnTable(table string) bool { return slices.Contains(OwnTables[:], table) }
