package rewrite

import (
	"strings"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A dialect is a database as guards are written for it.
type dialect struct {
	sqltext.Dialect
	guard   *guard.Dialect
	grammar *lex.Grammar
	unique  *session.Unique // how a statement asks for a table's unique keys; nil where it can't

	countsRows bool // drivers count the rows of a statement that returns some, and of each one of a text

	// ledger is the ledger's table as guards name it, where no schema has its own, and ledgerHome the schema, quoted,
	// of the function that asks it; empty for guards that ask by themselves.
	ledger, ledgerHome string
}

// dialects has every dialect, with guards that find the ledger where the session does.
var dialects = func() []*dialect {
	all := make([]*dialect, 1)
	for _, db := range databases.All() {
		all = append(all, &dialect{Dialect: db.Text, guard: db.Guard, grammar: db.Grammar,
			unique: db.Session.Unique, countsRows: db.Answers.CountsRows.Is(), ledger: ledgerTable})
	}
	return all
}()

// guarded returns the dialect that guards are written for.
func guarded(d databases.Dialect) (*dialect, error) {
	if _, err := databases.Of(d); err != nil {
		return nil, err
	}
	return dialects[d], nil
}

// withLedgerSchema is the dialect with guards that name the ledger in a schema; itself where the ledger
// belongs to the written table's.
func (d *dialect) withLedgerSchema(schema string) *dialect {
	if d.guard.OwnLedgers.Is() {
		return d
	}
	with := *d
	with.ledger = d.Quote(schema) + "." + ledgerTable
	return &with
}

// withLedgerFunction is the dialect with guards that ask the ledger by the function
// of this schema; itself where there is no such function.
func (d *dialect) withLedgerFunction(schema string) *dialect {
	if d.Facts().CreateLedgerFunction == "" {
		return d
	}
	with := *d
	with.ledgerHome = d.Quote(schema)
	return &with
}

// shadowsLedger reports whether an item of WITH with this name would stand before the
// ledger, or before what the guard adds to ask it: an item inside of another may have the name of the check, which the
// raises inside of it would ask.
func (d *dialect) shadowsLedger(item string) bool {
	return item == ledgerTable || d.guard.WritesInWith.Is() && isLedgerItem(item)
}

// maxNumbered is how many arguments with numbers the statement may have if the guard adds some.
func (d *dialect) maxNumbered() int {
	if !d.numbers() {
		return 0
	}
	return d.guard.MaxAdded
}

// numbers reports whether placeholders may have numbers. Else the guard has one, and
// an argument, for each use of a value.
func (d *dialect) numbers() bool { return d.Facts().Numbers.Is() }

// ledgerInWhere reports whether the ledger's check stands in the WHERE of each
// write, and else in WITH before the statement.
func (d *dialect) ledgerInWhere() bool { return !d.guard.WritesInWith.Is() }

// guardsSeveral reports whether one statement of a text with several can be guarded: not where a statement
// may be a block with semicolons of its own.
func (d *dialect) guardsSeveral() bool { return !d.grammar.Blocks.Is() }

// upsert is the clause that lets an INSERT update, with the assignments to columns, if any are
// given; for a message.
func (d *dialect) upsert(columns []string) string {
	clause, given := "ON CONFLICT", " (<what is unique>) DO UPDATE SET "
	value := func(column string) string { return "excluded." + column }
	if d.grammar.OnDuplicate.Is() {
		clause, given = "ON DUPLICATE KEY UPDATE", " "
		value = func(column string) string { return "VALUES(" + column + ")" }
	}
	if len(columns) == 0 {
		return clause
	}
	return clause + given + assigned(columns, value)
}

// assigned is a list of assignments for a message; three are enough.
func assigned(columns []string, value func(column string) string) string {
	var all []string
	for i, column := range columns {
		if i == 3 {
			all = append(all, "…")
			break
		}
		all = append(all, column+" = "+value(column))
	}
	return strings.Join(all, ", ")
}
