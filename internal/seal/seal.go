// Package seal describes a sealed table. The folders of internal/dialect have its triggers: package schema creates the
// triggers, and package verify compares a database's triggers with them.
package seal

import (
	"crypto/sha256"
	"encoding/hex"
)

// MaxToken is sqlfence.MaxToken.
const MaxToken = "900000000000000"

// A Table is a table to be sealed, as the database stores its names.
type Table struct {
	Name     string // without its schema
	Column   string // the fence column or the claim column
	Resource string // the name of the table's tokens
	Key      string // the column of the rule Key; empty without the rule
	Serial   string // the column of the rule Serial; empty without the rule

	Ledger, SingleUse bool

	// Claim is set if Column is a claim column. A write that increases the claim takes the row over. Takeovers and new
	// rows present no token; other writes must present the row's claim.
	Claim bool

	FromTransaction bool // a write may present the tokens in the setting sqlfence.tokens instead; PostgreSQL only

	// LedgerIn is the schema of the ledger if it differs from the table's. Only MySQL uses LedgerIn.
	LedgerIn string
}

// Than returns the comparison of a row's stored token with a write's token: once if a token may write the row only
// once, again if it may write again, same if it must equal the row's claim.
func (t *Table) Than(once, again, same string) string {
	switch {
	case t.Claim:
		return same
	case t.SingleUse:
		return once
	}
	return again
}

// Own returns a name for an object of a table. A long table name is replaced by a hash, because databases limit names.
func Own(kind, table string) string {
	if len(table) > 32 {
		sum := sha256.Sum256([]byte(table))
		table = hex.EncodeToString(sum[:16])
	}
	return kind + table
}

// Own returns a name for an object of the table.
func (t *Table) Own(kind string) string { return Own(kind, t.Name) }
