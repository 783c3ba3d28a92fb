package sqlfence

import (
	"database/sql"

	"github.com/sqlfence/sqlfence/internal/core"
)

// A Table is a registered table, with what its rules came to. See [Tables].
type Table struct {
	Name     string // as registered
	Resource string // the name of its tokens, or with KeyColumn what it begins with, before "/"

	// The columns are as the database stores their names; empty without the rule.
	FenceColumn  string // of [RowFence]
	KeyColumn    string // of [Key]
	SerialColumn string // of [Serial]
	ClaimColumn  string // of [Claim]
	ClaimOf      string // the table of [ClaimOf], as registered; empty without it
	Lock         LockColumns

	Ledger          bool // it has [Ledger], if only by default
	SingleUse       bool // a token that the row holds is refused: [SingleUse]
	Optional        bool // writes without a token pass: [Optional]
	UnfencedInserts bool // new rows need no token: [UnfencedInserts]
	Sealed          bool // it has [Sealed]; whether the database has the seal, [Verify] says
	FromTransaction bool // its seal takes the tokens of transactions: [FromTransaction]

	Mode Mode // of the table, by [InMode] or [WithMode]
}

// LockColumns are the columns of [EditLock], as the database stores their names; empty
// without it.
type LockColumns struct {
	By     string // who holds the lock
	Since  string // when it was taken
	Expiry string // when it expires
}

// Tables returns the tables that were registered with a fenced database, in the order of
// registration; none if there are none. It asks nothing of the database. If db wasn't
// opened by sqlfence, or a driver stands around the fenced one, it is [ErrInvalid].
func Tables(db *sql.DB) ([]Table, error) {
	s, err := settingsOf("Tables", db)
	if err != nil {
		return nil, err
	}
	tables := make([]Table, len(s.Tables()))
	for i, t := range s.Tables() {
		tables[i] = publicTable(t)
	}
	return tables, nil
}

// publicTable returns a table as [Tables] shows it.
func publicTable(t *core.Table) Table {
	r := &t.Rules
	return Table{
		Name: t.Name, Resource: t.Resource,
		FenceColumn: r.FenceColumn, KeyColumn: r.Key, SerialColumn: r.Serial, ClaimColumn: r.Claim, ClaimOf: t.ClaimOf,
		Lock:   LockColumns{By: r.Lock.By, Since: r.Lock.Since, Expiry: r.Lock.Expiry},
		Ledger: r.Ledger && t.ClaimOf == "", SingleUse: r.SingleUse, Optional: t.Optional,
		UnfencedInserts: r.UnfencedInserts, Sealed: r.Sealed, FromTransaction: t.FromTransaction,
		Mode: Mode(t.Mode),
	}
}
