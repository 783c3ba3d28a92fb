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

// The tests open ORMs and query builders on a fenced database. Each ORM runs the operations in ormOperations on a
// registered table, and again on the base driver without sqlfence. To add an ORM, add a file like squirrel_test.go and
// the ORM's name in ormTables.

// An orm is an ORM, opened in the way that its documentation shows.
type orm struct {
	name     string
	modules  []string
	versions func(t *testing.T, module string) string // nil: the version in go.mod
	bases    []string                                 // the drivers that the ORM supports
	open     func(t testing.TB, db *ormDB) ormActions
}

// ormActions holds an open ORM's action for each operation, by the operation's name. An operation that the ORM doesn't
// support is missing.
type ormActions map[string]ormAction

// An ormAction runs an operation and returns the ORM's result: records as ormBooks, or a number of rows.
type ormAction func(ctx context.Context) (any, error)

// ormTables are the tables of docs/data/compatibility.md, and the columns of each.
var ormTables = [][]orm{
	{gormORM, gormPreparedORM, entORM, bunORM, xormORM, popORM, upperORM},
	{sqlxORM, sqlcORM, squirrelORM, goquORM, jetORM},
}

// ormBases are the drivers that most ORMs support.
var ormBases = []string{"pq", "pgx", "mattn", "modernc", "mysql", "mysql-interpolated"}

// ormReadBook matches the ISBN of a book that every read returns. A read without a match hasn't mapped the rows.
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

// ormOnBase runs the operations of one ORM on one driver under every rule.
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

// An ormCase is an ORM's operation under a rule. want is the outcome on the base driver without sqlfence.
type ormCase struct {
	shop   *ormShop
	orm    orm
	rule   ormRule
	op     ormOperation
	action ormAction
	want   ormOutcome
	only   string // the key whose token is the only one in the context; "" for the tokens of all books
}

// Before each operation the rows' fence columns and the ledger hold ormMark. ormStale is older, and ormFresh is newer.
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

// unguardable returns the reason for which the operation is refused under every token, or "" if it isn't refused.
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

// assigned reports whether the operation assigns the key column. only is the key of the one updated book.
func (c ormCase) assigned() (only string, ok bool) {
	by := map[string]map[string]map[string]string{"isbn": ormAssigned, "id": ormAssignedID}
	only, ok = by[c.rule.key][c.orm.name][c.op.name]
	return only, ok
}

// ignoresStale reports whether the operation under a stale token has the same outcome as on the base driver. The rule
// permits this: the operation reads, or it touches no row with a newer token.
func (c ormCase) ignoresStale(stale ormOutcome) bool {
	switch {
	case c.op.reads:
		return true
	case c.rule.row:
		return c.op.spares && !c.updatesNothing()
	default: // under Ledger on SQLite a stale write that meets no row may return no error
		return c.shop.Dialect == sqlfence.SQLite && c.op.name == opMissing && !errors.Is(stale.err, sqlfence.ErrStale)
	}
}

// updatesNothing reports whether the operation's INSERT meets a conflicting row and updates that row to its present
// values: gorm's form of INSERT IGNORE on MySQL. A row fence treats this update as a write.
func (c ormCase) updatesNothing() bool {
	return c.shop.Dialect == sqlfence.MySQL && c.op.name == opIgnore && strings.HasPrefix(c.orm.name, "gorm")
}

// seen runs the operation with tokens of the given value: for all rows, for the row c.only, or none for 0. The ledger
// holds the higher of token and ormMark, so a fresh token is the newest one issued.
func (c ormCase) seen(t *testing.T, token int64) ormOutcome {
	t.Helper()
	tokens := c.rule.tokens(token)
	if c.only != "" && token != 0 {
		tokens = []sqlfence.Token{{Name: "books/" + c.only, Value: token}}
	}
	return c.shop.do(t, c.action, max(token, ormMark), tokens...)
}

// same fails the test unless the outcome equals the outcome on the base driver, and the written rows hold the token.
func (c ormCase) same(t *testing.T, got ormOutcome, token int64) {
	t.Helper()
	if got.rows != c.want.rows {
		t.Errorf("token %d: the books are\n%s, want\n%s", token, got.rows, c.want.rows)
	}
	returned := c.want.returned
	if c.rule.row && c.updatesNothing() && !c.shop.mariaDB(t) { // MariaDB's RETURNING counts each row once
		returned = int64(3) // the new row, and the row whose fence column changes, which MySQL counts twice
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

// repeated runs the operation twice and fails the test unless the second outcome equals the second outcome on the base
// driver. Most operations then find nothing to change, and MySQL counts no row. With a newer token under a row fence
// MySQL counts the rows, because their fence column changes, so returned isn't compared. gorm's Save relies on this
// count: if it is 0, Save takes the record for missing and inserts it.
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

// refusedFor fails the test unless the operation is refused with ErrUnguardable and an error text that has the reason.
func (c ormCase) refusedFor(t *testing.T, reason string) {
	t.Helper()
	got := c.seen(t, ormFresh)
	c.refused(t, got, sqlfence.ErrUnguardable)
	if got.err != nil && !strings.Contains(got.err.Error(), reason) {
		t.Errorf("err = %v, want it to say %q", got.err, reason)
	}
}

// refused fails the test unless the ORM returned an error that is target, and the rows are unchanged.
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
