package render

import (
	"strings"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Dialect has the properties of a database that guards depend on.
type Dialect struct {
	sqltext.Dialect
	Guard   *guard.Dialect
	Grammar *lex.Grammar
	Unique  *session.Unique // the queries for a table's unique keys; nil if no guard needs them

	CountsRows bool // drivers count the rows of a statement with RETURNING, and of each statement of a text

	ElseFalse string // the end of a CASE that is false otherwise

	// Ledger is the name of the ledger's table in guards, unless each schema has a separate ledger. functionSchema is
	// the schema of the function that queries the ledger, as a qualifier; empty for guards that query the ledger
	// without a function.
	Ledger, functionSchema string
}

// Guarded returns the dialect for guards that find the ledger where the session resolves the ledger's name.
func Guarded(d databases.Dialect) (*Dialect, error) {
	db, err := databases.Of(d)
	if err != nil {
		return nil, err
	}
	return &Dialect{Dialect: db.Text, Guard: db.Guard, Grammar: db.Grammar, Unique: db.Session.Unique,
		CountsRows: db.Errors.CountsRows.Is(), Ledger: LedgerTable,
		ElseFalse: " ELSE " + db.Text.Bool(false) + " END"}, nil
}

// WithLedgerSchema is the dialect with guards that name the ledger in a schema. If the ledger belongs to the written
// table's schema, the result is d.
func (d *Dialect) WithLedgerSchema(schema string) *Dialect {
	if d.Guard.OwnLedgers.Is() {
		return d
	}
	with := *d
	with.Ledger = d.Quote(schema) + "." + LedgerTable
	return &with
}

// WithLedgerFunction is the dialect with guards that query the ledger through the function of this schema. Without such
// a function, the result is d.
func (d *Dialect) WithLedgerFunction(schema string) *Dialect {
	if d.Capabilities().CreateLedgerFunction == "" {
		return d
	}
	with := *d
	with.functionSchema = d.Quote(schema) + "."
	return &with
}

// WithText is the dialect with guards in the SQL that text builds, for a server that needs other SQL than the dialect's
// other servers. If text is nil, the result is d.
func (d *Dialect) WithText(text sqltext.Dialect) *Dialect {
	if text == nil {
		return d
	}
	with := *d
	with.Dialect = text
	return &with
}

// ShadowsLedger reports whether a WITH item of this name in the application's statement would hide the ledger's table,
// or a WITH item sqlfence_newest_… that the guard adds to query the ledger. An item inside a nested query counts as
// well, because a guard fragment in that query would read the nested item instead of the guard's.
func (d *Dialect) ShadowsLedger(item string) bool {
	return item == LedgerTable || d.Guard.WritesInWith.Is() && isLedgerItem(item)
}

// MaxNumbered is the highest number of numbered arguments that the statement may have if the guard adds arguments.
func (d *Dialect) MaxNumbered() int {
	if !d.numbers() {
		return 0
	}
	return d.Guard.MaxAdded
}

// numbers reports whether placeholders may have numbers. Without numbers the guard has a placeholder and an argument
// for each use of a value.
func (d *Dialect) numbers() bool { return d.Capabilities().Numbers.Is() }

// LedgerInWhere reports whether the ledger's check stands in the WHERE of each write; otherwise it stands in WITH
// before the statement.
func (d *Dialect) LedgerInWhere() bool { return !d.Guard.WritesInWith.Is() }

// GuardsMultiStatement reports whether a statement of a multi-statement string can be guarded. It can't if a statement
// may be a block that contains semicolons.
func (d *Dialect) GuardsMultiStatement() bool { return !d.Grammar.Blocks.Is() }

// Upsert is the clause that lets an INSERT update, with the assignments to columns, if any are
// given; for a message.
func (d *Dialect) Upsert(columns []string) string {
	clause, given := "ON CONFLICT", " (<what is unique>) DO UPDATE SET "
	value := func(column string) string { return "excluded." + column }
	if d.Grammar.OnDuplicate.Is() {
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

// ledgerItem is the prefix of the WITH items that hold the tokens' checks.
const ledgerItem = "sqlfence_newest_"

func isLedgerItem(name string) bool { return strings.HasPrefix(name, ledgerItem) }

// builtIn names a function of the database, so that no function of the application can replace it.
func (d *Dialect) builtIn(function string) string {
	if d.Capabilities().BuiltIn == "" {
		return function
	}
	return d.Capabilities().BuiltIn + strings.ToLower(function)
}

// presentsAtOnce reports whether this number of claims is passed as a single argument.
func (d *Dialect) presentsAtOnce(claims int) bool {
	return d.Guard.ClaimsAtOnce > 0 && claims >= d.Guard.ClaimsAtOnce
}
