package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/nfc"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A Table is a registered table with its rules. The rules of package sqlfence set the fields.
type Table struct {
	Name     string // as registered
	Resource string // the name of the table's tokens; empty until check sets the default
	Optional bool
	Mode     Mode
	ModeSet  bool

	// FromTransaction: the seal accepts a transaction's tokens. The guarded statements don't depend on this.
	FromTransaction bool

	Rules   rewrite.Table
	ClaimOf string // the registered name of the table with the claims; empty without the rule ClaimOf

	factory     ErrorFactory
	spelled     session.Name
	sourceNames []string // the token's name, as the token source gets it
	errs        []error
}

// Fail records an invalid rule.
func (t *Table) Fail(fault error) { t.errs = append(t.errs, fault) }

// failIf records an invalid rule if a condition holds.
func (t *Table) failIf(invalid bool, fault string) {
	if invalid {
		t.Fail(errors.New(fault))
	}
}

// Once sets a rule's text. An empty text, or a second, different text, is invalid.
func (t *Table) Once(field *string, rule, value string) {
	switch {
	case value == "":
		t.Fail(fmt.Errorf("%s of an empty name", rule))
	case *field != "" && *field != value:
		t.Fail(fmt.Errorf("%s twice, %q and %q", rule, *field, value))
	}
	*field = value
}

// check checks the rules together, normalises the names as the database does, and returns all errors. db is nil for an
// unknown database.
func (t *Table) check(db *dialect.Database) []error {
	switch {
	case t.Rules.Exempt:
		t.checkExempt()
	case t.Rules.Claim != "":
		t.failIf(t.Optional, "the rules Claim and Optional: a takeover and a new row need no token, and every other "+
			"write presents its claim; leave Optional out")
		t.failIf(t.ClaimOf != "", "the rules Claim and ClaimOf: a row either has a claim, or presents that of another "+
			"table; leave one of them out")
	case t.ClaimOf != "":
		t.checkClaimOf()
	case t.Rules.FenceColumn == "":
		// Serials and locks alone need no tokens. Any rule about tokens means that the table has tokens.
		t.Rules.Ledger = t.Rules.Ledger || !t.Rules.Tokenless() || t.Rules.Key != "" ||
			t.Resource != "" || t.Optional || t.Rules.UnfencedInserts
		t.failIf(t.Rules.SingleUse, "SingleUse needs RowFence")
	}
	t.checkSealed()
	if db == nil {
		return t.errs
	}
	t.readNames(db.Dialect)
	t.failIf(t.Rules.Pattern && (t.Rules.Sealed || t.Rules.Claim != "" || t.Rules.Exempt),
		"the rules Sealed, Claim and Exempt are for one table; register it by its name")
	if t.Rules.Name != "" {
		t.nameResource()
	}
	return t.errs
}

// checkExempt checks that an exempt table has no second rule.
func (t *Table) checkExempt() {
	r := &t.Rules
	t.failIf(r.Fenced() || r.Tokenless() || r.Key != "" || r.SingleUse || r.Sealed || r.UnfencedInserts ||
		t.Resource != "" || t.Optional || t.ModeSet || t.ClaimOf != "",
		"the rule Exempt excludes all other rules; leave them out")
}

// HasLedger reports whether the table's tokens are compared with fencing_tokens.
func (t *Table) HasLedger() bool { return t.Rules.Ledger && t.ClaimOf == "" }

// readsRows reports whether guards of the table read columns of its rows.
func (t *Table) readsRows() bool {
	return slices.ContainsFunc(t.Rules.Columns(), func(c *string) bool { return *c != "" })
}

// byRow reports whether each token of the table is for one row, of the table or of the table that has the claims.
func (t *Table) byRow() bool { return t.Rules.Key != "" || t.Rules.ClaimOf.Name != "" }

// takes reports whether a token of this name is for the table, or for one of its rows:
// resource + "/" + key.
func (t *Table) takes(name string) bool {
	if !t.byRow() {
		return name == t.Resource
	}
	rest, ok := strings.CutPrefix(name, t.Resource)
	return ok && strings.HasPrefix(rest, "/")
}

// key returns the key of the row that a token of the table covers.
func (t *Table) key(token Token) string {
	if !t.byRow() {
		return ""
	}
	return strings.TrimPrefix(token.Name, t.Resource+"/")
}

// checkClaimOf checks the rules of a table with writes that present claims.
func (t *Table) checkClaimOf() {
	r := &t.Rules
	t.failIf(r.Ledger || r.FenceColumn != "" || r.SingleUse || r.Sealed || t.Resource != "",
		"the rule ClaimOf excludes Ledger, RowFence, SingleUse, Sealed and Resource, because the tokens "+
			"are those of the table with the claims; leave them out")
	r.Ledger = true
}

// findClaims resolves ClaimOf after all tables are checked, or returns why ClaimOf can't be resolved.
func (t *Table) findClaims(d dialect.Dialect, tables []*Table) error {
	schema, name, err := lang.ParseName(d, t.ClaimOf)
	if err != nil {
		return err
	}
	for _, of := range tables {
		if r := &of.Rules; r.Name == name && r.Schema == schema && r.Claim != "" && r.Key != "" {
			t.Resource = of.Resource
			t.Rules.ClaimOf = guard.Claims{Schema: schema, Name: name, Key: r.Key, Claim: r.Claim}
			return nil
		}
	}
	return fmt.Errorf("ClaimOf(%.80q): no table of this name is registered with Key and Claim; name "+
		"it as WithTable does",
		t.ClaimOf)
}

// checkSealed checks the rules of a sealed table: all of its writes must present a token.
func (t *Table) checkSealed() {
	switch {
	case !t.Rules.Sealed:
	case t.Rules.FenceColumn == "" && t.Rules.Claim == "":
		t.Fail(errors.New("the rule Sealed needs RowFence, or Key and Claim"))
	case t.Optional:
		t.Fail(errors.New("the rules Sealed and Optional: the database refuses writes without a token; leave one " +
			"of them out"))
	case t.Rules.Lock.By != "":
		t.Fail(errors.New("the rules Sealed and EditLock: a seal can't see who holds the lock, so that a proven " +
			"write would pass by it; leave one of them out"))
	case t.Rules.UnfencedInserts:
		t.Fail(errors.New("the rules Sealed and UnfencedInserts: the database refuses writes without a token; " +
			"leave one of them out"))
	}
}

// readNames normalises the names of the table and its columns as the database does.
func (t *Table) readNames(d dialect.Dialect) {
	var err error
	name := t.Name
	if schema, ok := strings.CutSuffix(name, "*"); ok && (schema == "" || strings.HasSuffix(schema, ".")) {
		t.Rules.Pattern, name = true, schema+"x"
	}
	if t.Rules.Schema, t.Rules.Name, err = lang.ParseName(d, name); err != nil {
		t.Fail(err)
	}
	t.spelled.Schema, t.spelled.Table, _ = lang.SpellName(d, name)
	if t.Rules.Pattern {
		t.Rules.Name, t.spelled.Table = "*", "*"
	}
	for _, column := range t.Rules.Columns() {
		if *column == "" {
			continue
		}
		read, err := lang.ParseColumn(d, *column)
		if err != nil {
			if column == &t.Rules.Key && strings.Contains(*column, ",") {
				err = fmt.Errorf("%w; for a key of several columns, add a generated column (docs/jobs.md)", err)
			}
			t.Fail(err)
			continue
		}
		*column = read
	}
}

// nameResource gives the tokens of a table the name of the table, unless it is a pattern or has a Resource.
func (t *Table) nameResource() {
	if t.Resource != "" || t.Rules.Pattern {
		return
	}
	t.Resource = t.Name
	if strings.Contains(t.Name, `"`) {
		t.Resource = strings.TrimPrefix(t.Rules.Schema+"."+t.Rules.Name, ".")
	}
	t.Resource = nfc.String(t.Resource)
	if fault := NameDefect(t.Resource); fault != "" {
		t.Fail(fmt.Errorf("its name can't be the name of its tokens: %s; set another with Resource", fault))
	}
}
