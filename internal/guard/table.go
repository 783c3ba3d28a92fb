package guard

import "strings"

// A Table says which table to guard and how.
type Table struct {
	Schema      string // normalised; empty means any schema
	Name        string // normalised
	FenceColumn string // column that stores the token of the row's last write; empty for none
	Key         string // column that selects the row's token; empty for one token per table
	Ledger      bool   // compare with fencing_tokens
	SingleUse   bool   // refuse a token equal to the row's

	// UnfencedInserts lets a write that only adds rows run without a token (its target is Free then), also
	// if the statement doesn't show the rows' keys. Their fence column is left to its default.
	UnfencedInserts bool

	// Sealed says that the database may refuse each write of the table that doesn't prove its
	// token: the mark is written as the token's negative, or the claim as its own, which the database makes positive,
	// and what deletes says the token besides. Unsealed values are without the proof.
	Sealed bool

	// Claim is the column of the row's generation, an integer that only rises; empty for none. It goes
	// with Key, and besides with Sealed alone. An UPDATE that assigns the column takes its rows over: it needs
	// no token, and raises unless it raises each row's; a token that names one of its rows is compared. So does
	// any UPDATE that is planned to take over. Every
	// other UPDATE and DELETE proves its rows' claims: each has the key of a token, and is of the
	// generation that is the token's value. A new row needs no token.
	Claim string

	// ClaimOf has Ledger compare the tokens with the claims of another table's rows, by equality, instead of
	// with fencing_tokens: each token's Key is a row's there. Without a Key of this table's, a write presents
	// all of its tokens. Without a Name it is fencing_tokens.
	ClaimOf Claims

	Serial string // column of the row's version, which every write raises; empty for none

	// SerialRequired refuses writes of existing rows unless their statement is versioned.
	// The caller has to refuse statements that only write existing rows, by the Changes of
	// their targets; an upsert raises if it would update.
	SerialRequired bool

	Lock Lock // columns of the lock that keeps others from editing a row; empty for none

	// Pattern says that it stands for each table of Schema, or of any, that no other Table is. A written one has its
	// rules by its own name; without a Schema, its schema is empty. Name tells of the pattern in errors.
	Pattern bool

	// Exempt says that no pattern stands for the table. It has no rules, and its writes pass.
	Exempt bool
}

// Fenced reports whether writes to the table are compared with tokens.
func (t *Table) Fenced() bool { return t.FenceColumn != "" || t.Ledger || t.Claim != "" }

// FreesInserts reports whether a new row needs no token.
func (t *Table) FreesInserts() bool { return t.UnfencedInserts || t.Claim != "" }

// ClaimsOther reports whether writes to the table present another's claims.
func (t *Table) ClaimsOther() bool { return t.ClaimOf != (Claims{}) }

// Locks reports whether the table's rows may be locked.
func (t *Table) Locks() bool { return t.Lock.By != "" }

// Tokenless reports whether a rule of the table's has something to do without a token.
func (t *Table) Tokenless() bool { return t.Claim != "" || t.Serial != "" || t.Locks() }

// FullName returns the table's name with its schema, if it has one.
func (t *Table) FullName() string { return strings.TrimPrefix(t.Schema+"."+t.Name, ".") }

// Columns returns the columns that the table's rules are about, to be normalised.
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
