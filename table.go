package sqlfence

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence/internal/nfc"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A Rule says how a registered table is guarded. See [WithTable].
type Rule func(*table)

// RowFence keeps the mark in the row: column is a 64-bit integer column of the
// table that holds the highest token that has written the row; NULL and 0 mean
// none yet. The application doesn't write to it. May be combined with [Ledger];
// both are then enforced. In SQLite guarded statements say OR ABORT, so that a
// table declared with ON CONFLICT IGNORE or REPLACE, also of NOT NULL, raises an
// error instead.
//
// A row can't know whether its token was ever issued: any higher number passes, and
// refuses all lower ones from then on, also those of honest holders. Nor has a row
// that was deleted any mark: an INSERT or upsert with an older token brings it back.
// Where a token may come from outside, as from a request, combine it with [Ledger],
// which refuses both.
//
// In PostgreSQL a column of another type than bigint, integer or smallint refuses
// every UPDATE and DELETE with [ErrUnguardable]: in a floating type neighbouring
// tokens are equal.
func RowFence(column string) Rule {
	return func(t *table) { t.once(&t.rules.FenceColumn, "RowFence", column) }
}

// Ledger lets a write pass only with the newest token issued or adopted for its
// name, as the table fencing_tokens has it (see package tokens): a lower one is
// [ErrStale], a higher one [ErrNotIssued]. A token of another service has to be
// adopted before it is written with. The guarded table needs no column.
// The default where no rule says otherwise. On SQLite the ledger has to be in
// the database file of the guarded table; INSERT ... SELECT * between tables with
// generated columns fails, name the columns instead; and DEFAULT VALUES fails for a
// table WITHOUT ROWID, and ignores the default of a column called _rowid_. PostgreSQL
// refuses guarded writes (0A000) to a table with a DO ALSO rule or a conditional
// DO INSTEAD rule for them.
func Ledger() Rule {
	return func(t *table) { t.rules.Ledger = true }
}

// Resource sets the name of the tokens that guard this table; by default it is
// the table's name as it was registered. It is brought into Unicode's normalization
// form C, like the names of the tokens.
func Resource(name string) Rule {
	return func(t *table) {
		if err := ValidateName(name); err != nil {
			t.fail(err)
		}
		t.once(&t.resource, "Resource", nfc.String(name))
	}
}

// Key gives each row a token of its own: the row whose column holds 42 is
// guarded by the token called resource + "/42". A write that reaches a row which
// none of the context's tokens names is refused with [ErrOutOfScope], and so is
// an INSERT of such a row. The key is compared as the text that the database
// makes of it, so it has to be of an integer, text or UUID type: in one that
// rounds, pads or spells otherwise, such as numeric(10,2), char(8), boolean, bytea
// or SQLite's REAL, a new row may get a key that its token doesn't name. An INSERT
// whose key may be stored as another text in one of the former, such as 07, 0x7 or
// 7_0 for an integer, or a UUID without its dashes, is refused. Tokens' names
// are in Unicode's normalization form C, so a row whose key isn't can't be written. A
// row keeps its key: a statement may assign the column only where the context holds one token of
// the table, and only its key, as an argument, a plain constant or the key of the
// row that an upsert was to insert. An argument or a constant may have a cast to an
// integer type, uuid, text or varchar; in SQLite to TEXT. A generated column is no
// key: an UPDATE of what it is computed from moves the row, which a statement
// doesn't show. Nor is a key that a trigger changes. Where a
// [Ledger] guards the table, all tokens of the table's rows in the context have
// to be current, also those of rows that the statement doesn't reach.
func Key(column string) Rule {
	return func(t *table) { t.once(&t.rules.Key, "Key", column) }
}

// SingleUse refuses a token that has already marked the row: one token, one
// write per row. Needs [RowFence]. Mind that a driver's retry of a write that
// had landed is then refused too.
func SingleUse() Rule {
	return func(t *table) { t.rules.SingleUse = true }
}

// Optional lets writes without a token pass unguarded; those with one are
// guarded. Use it while an application is being converted.
func Optional() Rule {
	return func(t *table) { t.optional = true }
}

// table is one registered table with its rules.
type table struct {
	name     string // as registered
	resource string
	optional bool
	serial   *serialOptions // nil for none
	rules    rewrite.Table
	errs     []error
}

func newTable(name string, rules []Rule) *table {
	t := &table{name: name}
	for _, rule := range rules {
		if rule == nil {
			t.fail(errors.New("nil rule"))
			continue
		}
		rule(t)
	}
	return t
}

func (t *table) fail(err error) { t.errs = append(t.errs, err) }

// once sets a rule's text and refuses an empty or a second, different one.
func (t *table) once(field *string, rule, value string) {
	switch {
	case value == "":
		t.fail(fmt.Errorf("%s of an empty name", rule))
	case *field != "" && *field != value:
		t.fail(fmt.Errorf("%s twice, %q and %q", rule, *field, value))
	}
	*field = value
}

// resolve checks the rules together and reads the names as the dialect does.
func (t *table) resolve(d Dialect) error {
	if len(t.errs) > 0 {
		return errors.Join(t.errs...)
	}
	if t.rules.FenceColumn == "" {
		// Serials and locks alone need no tokens; a rule about tokens says that there are some.
		if t.rules.Serial == "" && t.rules.Lock.By == "" || t.rules.Key != "" || t.resource != "" || t.optional {
			t.rules.Ledger = true
		}
		if t.rules.SingleUse {
			return errors.New("SingleUse needs RowFence")
		}
	}
	var err error
	if t.rules.Schema, t.rules.Name, err = rewrite.ParseName(d, t.name); err != nil {
		return err
	}
	for _, column := range []*string{&t.rules.FenceColumn, &t.rules.Key, &t.rules.Serial,
		&t.rules.Lock.By, &t.rules.Lock.Since, &t.rules.Lock.Expiry} {
		if *column == "" {
			continue
		}
		if *column, err = rewrite.ParseColumn(d, *column); err != nil {
			return err
		}
	}
	if t.resource == "" {
		t.resource = t.name
		if strings.Contains(t.name, `"`) {
			t.resource = strings.TrimPrefix(t.rules.Schema+"."+t.rules.Name, ".")
		}
	}
	t.resource = nfc.String(t.resource)
	return ValidateName(t.resource)
}
