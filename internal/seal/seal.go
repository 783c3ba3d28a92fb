// Package seal says what a sealed table is. The folders of internal/dialect have its triggers: package schema creates
// them, and package verify compares a database's with them.
package seal

import (
	"crypto/sha256"
	"encoding/hex"
)

// MaxToken is that of package sqlfence.
const MaxToken = "900000000000000"

// A Table is a table to be sealed, as the database stores its names.
type Table struct {
	Name     string // without its schema
	Mark     string // the column of the fence or of the claim
	Resource string // of its tokens
	Key      string // the column; empty for none
	Serial   string // the column; empty for none

	Ledger, SingleUse bool

	// Claim says that the mark is the row's own generation: a write that raises it takes the row over and proves
	// nothing, as a new row does, and every other one proves the generation that the row has.
	Claim bool

	FromTransaction bool // a write without a proof takes its transaction's; PostgreSQL's alone

	// LedgerIn is the schema of the ledger where that isn't the table's own. MySQL alone asks for it.
	LedgerIn string
}

// Than returns one of three comparisons of a row's mark with a token: where that may write the row once only, or again,
// or where it has to be the mark.
func (t *Table) Than(once, again, same string) string {
	switch {
	case t.Claim:
		return same
	case t.SingleUse:
		return once
	}
	return again
}

// Own returns a name that belongs to a table, of limited length.
func Own(kind, table string) string {
	if len(table) > 32 {
		sum := sha256.Sum256([]byte(table))
		table = hex.EncodeToString(sum[:16])
	}
	return kind + table
}

// Own returns a name that belongs to the table.
func (t *Table) Own(kind string) string { return Own(kind, t.Name) }
