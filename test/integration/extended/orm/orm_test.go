package orm_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// ORMs and query builders on a fenced database: each does the operations of
// ormOperations on a table that is registered, and again on the base driver
// alone. Another one is a file like squirrel_test.go and its name in ormTables.

// An orm is one ORM, opened as its users open it.
type orm struct {
	name     string
	modules  []string
	versions func(t *testing.T, module string) string // nil: as in go.mod
	bases    []string                                 // the drivers it is used with
	open     func(t testing.TB, db *ormDB) ormActions
}

// ormActions are what one open ORM does for each operation by its name. One
// that the ORM has no way to do is left out.
type ormActions map[string]ormAction

// An ormAction does an operation and tells what the ORM returned: records as
// ormBooks, or a number of rows.
type ormAction func(ctx context.Context) (any, error)

// ormTables are the tables of docs/data/compatibility.md, and the columns of each.
var ormTables = [][]orm{
	{gormORM, gormPreparedORM, entORM, bunORM, xormORM, popORM, upperORM},
	{sqlxORM, sqlcORM, squirrelORM, goquORM, jetORM},
}

// ormBases are the drivers that most ORMs can be used with.
var ormBases = []string{"pq", "pgx", "mattn", "modernc", "mysql", "mysql-interpolated"}

// ormReadBook is the ISBN of a book that every read returns, if it has mapped the rows.
var ormReadBook = regexp.MustCompile(`\bi[23]\b`)

func TestORMs(t *testing.T) {
	found := newORMTable()
	for _, o := range slices.Concat(ormTables...) {
		t.Run(o.name, func(t *testing.T) {
			harness.EachProgram(t, func(t *testing.T, b harness.Base) {
				if !slices.Contains(o.bases, b.Name) {
					t.Skip("not a driver of this ORM")
				}
				ormOnBase(t, o, b, found)
			})
		})
	}
	if !found.complete() {
		t.Skip("not every ORM has run on all of its drivers: the page isn't compared")
	}
	harness.InCompatibility(t, "orms", found.markdown(t))
}

// ormOnBase runs one ORM on one driver, under every rule.
func ormOnBase(t *testing.T, o orm, b harness.Base, found *ormTable) {
	s := newORMShop(t, b)
	plain := o.open(t, s.plain)
	for name := range plain {
		if !slices.ContainsFunc(ormOperations, func(op ormOperation) bool { return op.name == name }) {
			t.Errorf("there is no operation %q", name)
		}
	}
	fenced := make([]ormActions, len(ormRules))
	for i, r := range ormRules {
		fenced[i] = o.open(t, s.fenced(t, r))
	}
	var done harness.Subtests
	for _, op := range ormOperations {
		action, ok := plain[op.name]
		if !ok {
			found.add(o, b, op, "–")
			continue
		}
		passed := done.Run(t, op.name, func(t *testing.T) {
			want := s.do(t, action, ormMark)
			if changed := want.rows != s.initial; changed != op.changes() {
				t.Fatalf("on the base driver alone the books are %s, returned %v, %v", want.rows, want.returned, want.err)
			}
			if (want.err != nil) != op.fails {
				t.Fatalf("on the base driver alone err = %v", want.err)
			}
			if op.reads && !op.fails && !ormReadBook.MatchString(fmt.Sprint(want.returned)) {
				t.Fatalf("on the base driver alone it returned %+v", want.returned)
			}
			var again ormOutcome
			if s.countsChanges() {
				again = s.again(t, action, ormMark, nil, nil)
			}
			var rules harness.Subtests
			for i, r := range ormRules {
				rules.Run(t, r.name, func(t *testing.T) {
					c := ormCase{shop: s, orm: o, rule: r, op: op, action: fenced[i][op.name], want: want}
					c.run(t)
					if s.countsChanges() && r.key == "" && c.unguardable() == "" {
						c.repeated(t, again)
					}
				})
			}
			rules.NeedAll(t)
		})
		found.add(o, b, op, op.verdict(o, b, passed))
	}
	done.NeedAll(t)
	found.ran[[2]string{o.name, b.Name}] = true
}

// An ormCase is one operation by one ORM under one rule, and what the ORM did on
// the base driver alone.
type ormCase struct {
	shop   *ormShop
	orm    orm
	rule   ormRule
	op     ormOperation
	action ormAction
	want   ormOutcome
	only   string // the one key whose token it is done with; "" for those of all
}

// The rows' marks are 5 when an operation begins, and so is the ledger.
const (
	ormStale = 3
	ormMark  = 5
	ormFresh = 7
)

func (c ormCase) run(t *testing.T) {
	if reason := c.unguardable(); reason != "" {
		c.refusedFor(t, reason)
		return
	}
	if only, ok := c.assigned(); ok {
		c.refusedFor(t, "it assigns the key column while the context carries several tokens for this table")
		if only == "" {
			return
		}
		c.only = only
	}
	c.same(t, c.seen(t, ormFresh), ormFresh)
	if stale := c.seen(t, ormStale); c.ignoresStale(stale) {
		c.same(t, stale, ormStale)
	} else {
		c.refused(t, stale, sqlfence.ErrStale)
	}
	none := c.seen(t, 0)
	if c.op.reads {
		c.same(t, none, 0)
		return
	}
	c.refused(t, none, sqlfence.ErrNoFence)
	if c.rule.key != "" && !c.op.spares {
		other := c.shop.do(t, c.action, ormMark, sqlfence.Token{Name: "books/another", Value: ormMark})
		c.refused(t, other, sqlfence.ErrOutOfScope)
	}
}

// unguardable tells why the operation is refused with whatever token, if it is.
func (c ormCase) unguardable() string {
	switch {
	case c.op.writesMark && c.rule.row:
		return "it assigns the fence column, which only sqlfence writes; leave the column out"
	case c.op.creates && c.rule.key == "id", slices.Contains(ormRefused[c.orm.name], c.op.name) && c.rule.key == "id":
		return "unknown before the statement runs"
	case c.op.listsKey(c.orm, c.shop.Base) && c.rule.key == "isbn":
		return "it assigns the key column a value that may be another key"
	}
	return ""
}

// assigned tells whether the operation assigns the key, and that of the one book
// for which it does.
func (c ormCase) assigned() (only string, ok bool) {
	by := map[string]map[string]map[string]string{"isbn": ormAssigned, "id": ormAssignedID}
	only, ok = by[c.rule.key][c.orm.name][c.op.name]
	return only, ok
}

// ignoresStale tells whether the operation ends with a stale token as it does on
// the base driver alone. What it then wrote or found wrong, it would have been
// free to write or find by the rule.
func (c ormCase) ignoresStale(stale ormOutcome) bool {
	switch {
	case c.op.reads:
		return true
	case c.rule.row:
		return c.op.spares && !c.updatesNothing()
	default: // SQLite asks the ledger where it looks for the key, if that is compared in a form that is known
		return c.shop.Dialect == sqlfence.SQLite && c.op.name == opMissing && !errors.Is(stale.err, sqlfence.ErrStale)
	}
}

// updatesNothing tells whether the row that is in the way of a new one is updated to what
// it is, which a row fence takes for a write.
func (c ormCase) updatesNothing() bool {
	return c.shop.Dialect == sqlfence.MySQL && c.op.name == opIgnore && strings.HasPrefix(c.orm.name, "gorm")
}

// seen does the operation with tokens of that value for all rows, or for the only
// one, or without any for 0. A fresh one has been issued, to nobody newer.
func (c ormCase) seen(t *testing.T, token int64) ormOutcome {
	t.Helper()
	tokens := c.rule.tokens(token)
	if c.only != "" && token != 0 {
		tokens = []sqlfence.Token{{Name: "books/" + c.only, Value: token}}
	}
	return c.shop.do(t, c.action, max(token, ormMark), tokens...)
}

// same fails the test unless the outcome is as on the base driver alone, and
// the rows that were written bear the token.
func (c ormCase) same(t *testing.T, got ormOutcome, token int64) {
	t.Helper()
	if got.rows != c.want.rows {
		t.Errorf("token %d: the books are\n%s, want\n%s", token, got.rows, c.want.rows)
	}
	returned := c.want.returned
	if c.rule.row && c.updatesNothing() && !c.shop.mariaDB(t) { // MariaDB's RETURNING counts each row once
		returned = int64(3) // the new row, and twice the one that gets the token
	}
	if !reflect.DeepEqual(got.returned, returned) {
		t.Errorf("token %d: returned %+v, want %+v", token, got.returned, returned)
	}
	if c.op.fails != (got.err != nil) || got.err != nil && got.err.Error() != c.want.err.Error() {
		t.Errorf("token %d: err = %v, want %v", token, got.err, c.want.err)
	}
	if c.rule.row {
		c.shop.wantMarks(t, got, token)
	}
}

// repeated fails the test unless the operation, done a second time, comes out as it does on the
// base driver alone: most then find nothing left to change. With a newer token a row counts of which
// only the mark has changed. For gorm's Save it is there then, where on the base driver alone
// it inserts a record that it took for missing.
func (c ormCase) repeated(t *testing.T, want ormOutcome) {
	tokens := []int64{ormMark, ormFresh}
	if !c.rule.row {
		tokens = tokens[1:]
	}
	for _, token := range tokens {
		got := c.shop.again(t, c.action, token, c.rule.tokens(ormMark), c.rule.tokens(token))
		if got.rows != want.rows || got.err != nil && want.err == nil {
			t.Errorf("again, token %d: %v, the books are\n%s, want %v\n%s", token, got.err, got.rows, want.err, want.rows)
		}
		if token == ormFresh && c.rule.row {
			continue
		}
		if !reflect.DeepEqual(got.returned, want.returned) || got.err == nil && want.err != nil {
			t.Errorf("again, token %d: returned %+v, %v; want %+v, %v", token, got.returned, got.err, want.returned, want.err)
		}
	}
}

// refusedFor fails the test unless the operation can't be guarded, for the reason.
func (c ormCase) refusedFor(t *testing.T, reason string) {
	t.Helper()
	got := c.seen(t, ormFresh)
	c.refused(t, got, sqlfence.ErrUnguardable)
	if got.err != nil && !strings.Contains(got.err.Error(), reason) {
		t.Errorf("err = %v, want it to say %q", got.err, reason)
	}
}

// refused fails the test unless the ORM returned an error that is target, and
// nothing has changed.
func (c ormCase) refused(t *testing.T, got ormOutcome, target error) {
	t.Helper()
	if !errors.Is(got.err, target) {
		t.Errorf("err = %v, returned %+v; want %v", got.err, got.returned, target)
	}
	var stale *sqlfence.StaleError
	if target == sqlfence.ErrStale && (!errors.As(got.err, &stale) || stale.Token.Value != ormStale || stale.Current != ormMark) {
		t.Errorf("err = %#v, want a StaleError with token %d and current %d", got.err, ormStale, ormMark)
	}
	if got.rows != c.shop.initial {
		t.Errorf("the books are\n%s, want them unchanged:\n%s", got.rows, c.shop.initial)
	}
}
