package rewrite

import (
	"cmp"
	"slices"

	"github.com/sqlfence/sqlfence/internal/guard"
)

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
	// and what deletes says the token besides. [TableValues.Unsealed] is without the proof.
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
	ClaimOf guard.Claims

	Serial string // column of the row's version, which every write raises; empty for none

	// SerialRequired refuses writes of existing rows unless their statement is versioned.
	// The caller has to refuse statements that only write existing rows, by the Changes of
	// their targets; an upsert raises if it would update.
	SerialRequired bool

	Lock guard.Lock // columns of the lock that keeps others from editing a row; empty for none

	// Pattern says that it stands for each table of Schema, or of any, that no other Table is. A written one has its
	// rules by its own name; without a Schema, its schema is empty. Name tells of the pattern in errors.
	Pattern bool

	// Exempt says that no pattern stands for the table. It has no rules, and its writes pass.
	Exempt bool

	pattern            int        // of a table that a pattern stands for: its index
	name               string     // quoted
	fence, key, serial string     // the columns, quoted
	lock               guard.Lock // the same of its columns
	number             string     // the serial or the claim, quoted: what an assigned value has to raise
	tokenless          bool       // Tokenless
	steady             string     // one of them, or the lock's holder, which a check may assign to itself
	columns            []string   // all that the rules are about
	has                []int      // the rules with columns, as indexes of precedence
}

// Fenced reports whether writes to the table are compared with tokens.
func (t *Table) Fenced() bool { return t.FenceColumn != "" || t.Ledger || t.Claim != "" }

// freesInserts reports whether a new row needs no token.
func (t *Table) freesInserts() bool { return t.UnfencedInserts || t.Claim != "" }

// Tokenless reports whether a rule of the table's has something to do without a token.
func (t *Table) Tokenless() bool {
	for _, r := range precedence {
		if r.withoutTokens() && len(r.columns(t)) > 0 {
			return true
		}
	}
	return false
}

// Columns returns the columns that the table's rules are about, to be normalised.
func (t *Table) Columns() (columns []*string) {
	for _, r := range precedence {
		columns = append(columns, r.columns(t)...)
	}
	return columns
}

// owned returns the names of the columns.
func (t *Table) owned() (names []string) {
	for _, column := range t.Columns() {
		names = append(names, *column)
	}
	return names
}

// sharedColumn returns a column of the lock that has another meaning, too, or "".
func (t *Table) sharedColumn() string {
	seen := t.owned()
	for _, c := range precedence[ruleEditLock].columns(t) {
		first := slices.Index(seen, *c)
		if *c != "" && slices.Contains(seen[first+1:], *c) {
			return *c
		}
	}
	return ""
}

// prepare notes the columns, and how they are written.
func (t *Table) prepare(d *dialect) {
	quoted := func(column string) string {
		if column == "" {
			return ""
		}
		return d.Quote(column)
	}
	t.columns = slices.DeleteFunc(t.owned(), func(c string) bool { return c == "" })
	for i, r := range precedence {
		if len(r.columns(t)) > 0 {
			t.has = append(t.has, i)
		}
	}
	t.name, t.tokenless = quoted(t.Name), t.Tokenless()
	t.fence, t.key, t.serial = quoted(t.FenceColumn), quoted(t.Key), quoted(t.Serial)
	t.number = cmp.Or(t.serial, quoted(t.Claim))
	t.lock = guard.Lock{By: quoted(t.Lock.By), Since: quoted(t.Lock.Since), Expiry: quoted(t.Lock.Expiry)}
	t.steady = cmp.Or(t.fence, t.number, t.lock.By, t.key)
}
