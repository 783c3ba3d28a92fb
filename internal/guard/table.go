package guard

import "strings"

// A Table is a table to guard, with its rules.
type Table struct {
	Schema      string // normalised; empty means any schema
	Name        string // normalised
	FenceColumn string // column that stores the token of the row's last write; empty without RowFence
	Key         string // column that selects the row's token; empty if one token covers the table
	Ledger      bool   // compare with fencing_tokens
	SingleUse   bool   // refuse a token that equals the stored token

	// UnfencedInserts lets a write that only adds rows run without a token (its target is Free then), even if the
	// statement doesn't show the rows' keys. The new rows' fence column gets its default.
	UnfencedInserts bool

	// Sealed: the database may refuse each write of the table that presents no token. The guard assigns the negative
	// token to the fence column, or the negative claim to the claim column, and the seal makes the value positive. A
	// DELETE presents its token separately. A write that the caller marks as Unsealed presents none.
	Sealed bool

	// Claim is the column of the row's claim, an integer that only increases; empty without the rule. It goes with Key
	// and, optionally, Sealed. An UPDATE that assigns the column, or is planned as [TakesOver], claims its rows: it
	// needs no token, and throws an error unless it increases each row's claim. If a token names one of the rows, the
	// row's claim is compared with the token. Every other UPDATE and DELETE must present its rows' claims: each row has
	// the key of a token, and the token's value as its claim. A new row needs no token.
	Claim string

	// ClaimOf makes Ledger compare the tokens, by equality, with the claims of another table's rows instead of with
	// fencing_tokens. The key in a token's name is the key of a row of that table. If this table has no Key, a write
	// presents all of its tokens. If ClaimOf has no Name, tokens are compared with fencing_tokens.
	ClaimOf Claims

	Serial string // column of the row's version, which every write increments; empty without Serial

	// SerialRequired refuses writes of existing rows unless the statement is planned as [Versioned]. The caller must
	// refuse statements that only write existing rows ([Target].Changes). An upsert throws an error if it would update.
	SerialRequired bool

	Lock Lock // columns of the lock that keeps other users from editing a row; empty without EditLock

	// Pattern: the Table stands for each table of Schema, or of any schema, without a Table of its own. A written table
	// that matches has the pattern's rules, and tokens of its own name. Errors name the pattern by Name.
	Pattern bool

	// Exempt: no pattern matches the table. The table has no rules, and its writes pass.
	Exempt bool
}

// Fenced reports whether writes to the table are compared with tokens.
func (t *Table) Fenced() bool { return t.FenceColumn != "" || t.Ledger || t.Claim != "" }

// FreesInserts reports whether a new row needs no token.
func (t *Table) FreesInserts() bool { return t.UnfencedInserts || t.Claim != "" }

// ClaimsOther reports whether writes to the table present another table's claims.
func (t *Table) ClaimsOther() bool { return t.ClaimOf != (Claims{}) }

// Locks reports whether the table's rows may be locked.
func (t *Table) Locks() bool { return t.Lock.By != "" }

// Tokenless reports whether a rule of the table works without a token.
func (t *Table) Tokenless() bool { return t.Claim != "" || t.Serial != "" || t.Locks() }

// FullName returns the table's name, qualified if Schema is set.
func (t *Table) FullName() string { return strings.TrimPrefix(t.Schema+"."+t.Name, ".") }

// Columns returns the columns of the table's rules. The caller may normalise them.
func (t *Table) Columns() (columns []*string) {
	for _, column := range []*string{&t.Key, &t.FenceColumn, &t.Claim, &t.Serial} {
		if *column != "" {
			columns = append(columns, column)
		}
	}
	if t.Locks() {
		columns = append(columns, &t.Lock.By, &t.Lock.Since, &t.Lock.Expiry)
	}
	return columns
}
