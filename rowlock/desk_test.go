package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/rowlock"
)

// A desk is a database with the table invoice, whose rows people edit, and the
// table rowlocks. It recognizes the statements of package rowlock by their text and has their effects. An unknown
// statement or column is an error. Tests with a real database check that the database accepts the statements.
type desk struct {
	*fakedb.DB
	db      *sql.DB
	dialect sqlfence.Dialect

	keys                      []string // the columns' names
	serial, by, since, expiry string
	catalogue                 [][]any // of each column: name, type, whether it is NOT NULL
	unique                    bool    // there is a unique index on the key

	mu     sync.Mutex
	now    time.Time // the desk's clock, which stands still unless a test moves it
	tables tables
	before tables // at the begin of the open transaction
	owner  int    // the connection with the open transaction; 0: none
	fails  func(fakedb.Call) error
}

type tables struct {
	rows map[string]row  // by the key as rowlocks spells it
	held map[string]held // by the same key; nil: the table rowlocks doesn't exist
}

// A row has the columns total, serial and those of the lock.
type row struct {
	total         int64
	serial, by    any
	since, expiry time.Time // zero: NULL
}

// held is a row of rowlocks.
type held struct {
	table, user, session     string
	since, expiry, heartbeat time.Time
}

func (t tables) clone() tables { return tables{maps.Clone(t.rows), maps.Clone(t.held)} }

// noon is when the desks' clocks begin.
var noon = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)

// newDesk returns a desk with rows 7 and 8 at version 1, both unlocked.
func newDesk(dialect sqlfence.Dialect) *desk {
	d := &desk{
		dialect: dialect, now: noon,
		keys: []string{"id"}, serial: "serial", by: "editedby", since: "editedsince", expiry: "editedexpiry",
	}
	integer, times := "integer", "integer"
	if dialect == sqlfence.Postgres {
		integer, times = "bigint", "timestamp with time zone"
	}
	d.catalogue = [][]any{
		{"id", integer, true}, {"total", integer, true}, {"serial", integer, true},
		{"editedby", "text", false}, {"editedsince", times, false}, {"editedexpiry", times, false},
	}
	d.unique = true
	d.tables = tables{map[string]row{"[7]": {total: 100, serial: int64(1)}, "[8]": {total: 100, serial: int64(1)}}, map[string]held{}}
	d.DB = fakedb.New(d.answer)
	d.db = sql.OpenDB(d.DB)
	return d
}

// eachDialect runs test on a desk of each dialect. No connection may be in use after it.
func eachDialect(t *testing.T, test func(t *testing.T, d *desk)) {
	for _, dialect := range []sqlfence.Dialect{sqlfence.Postgres, sqlfence.SQLite} {
		t.Run(dialect.String(), func(t *testing.T) {
			d := newDesk(dialect)
			defer d.db.Close()
			test(t, d)
			if n := d.db.Stats().InUse; n != 0 {
				t.Errorf("%d connections are still in use", n)
			}
		})
	}
}

func (d *desk) table(t testing.TB, opts ...rowlock.Option) *rowlock.Table {
	t.Helper()
	table, err := rowlock.New(d.db, "invoice", append(opts, rowlock.WithDialect(d.dialect))...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// managed returns invoice with a Manager of it.
func (d *desk) managed(t testing.TB) (*rowlock.Table, *rowlock.Manager) {
	t.Helper()
	m, err := rowlock.NewManager(d.db, rowlock.WithDialect(d.dialect))
	if err != nil {
		t.Fatal(err)
	}
	return d.table(t, rowlock.WithManager(m)), m
}

// set changes row 7 directly.
func (d *desk) set(change func(*row)) {
	r := d.tables.rows["[7]"]
	change(&r)
	d.tables.rows["[7]"] = r
}

// lock gives row 7's lock to by, from a minute ago on, with left as the remaining time.
func (d *desk) lock(by any, left time.Duration) {
	d.set(func(r *row) { r.by, r.since, r.expiry = by, d.now.Add(-time.Minute), d.now.Add(left) })
}

func (d *desk) row() row { return d.tables.rows["[7]"] }

// state returns all stored data as text.
func (d *desk) state() string { return fmt.Sprint(d.tables) }

func (d *desk) answer(ctx context.Context, c fakedb.Call) (fakedb.Response, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owner != 0 && d.owner != c.Conn {
		return fakedb.Response{}, fmt.Errorf("outside of the open transaction: %v", c)
	}
	failed := ctx.Err()
	if d.fails != nil && failed == nil {
		failed = d.fails(c)
	}
	switch c.Kind {
	case fakedb.Begin:
		if failed == nil {
			d.owner, d.before = c.Conn, d.tables.clone()
		}
		return fakedb.Response{}, failed
	case fakedb.Commit, fakedb.Rollback:
		if c.Kind == fakedb.Rollback || failed != nil {
			d.tables = d.before
		}
		d.owner = 0
		return fakedb.Response{}, failed
	}
	if failed != nil {
		return fakedb.Response{}, failed
	}
	return d.execute(d.read(c))
}

func (d *desk) execute(s statement) (fakedb.Response, error) {
	if d.tables.held == nil && s.has(" rowlocks ") && !s.has("CREATE TABLE") {
		return fakedb.Response{}, errors.New("no such table: rowlocks")
	}
	switch {
	case s.asksForRowlocks():
		if d.tables.held == nil {
			return fakedb.Response{Columns: []string{"name", "type", "notnull"}}, nil
		}
		return fakedb.Response{Columns: []string{"name", "type", "notnull"}, Rows: [][]any{{"table_name", "text", true}}}, nil
	case s.has("indisunique"), s.has("pragma_index_list("):
		return fakedb.Response{Rows: [][]any{{d.unique}}}, nil
	case s.has("pg_attribute"), s.has("pragma_table_info("):
		return fakedb.Response{Columns: []string{"name", "type", "notnull"}, Rows: d.catalogue}, nil
	case s.has("CREATE TABLE IF NOT EXISTS rowlocks"):
		if d.tables.held == nil {
			d.tables.held = map[string]held{}
		}
		return fakedb.Response{}, nil
	case s.has("INSERT INTO rowlocks"):
		return d.record(s)
	case s.has("DELETE FROM rowlocks"):
		return d.unrecord(s)
	case s.has("UPDATE rowlocks SET heartbeat"):
		return d.heartbeat(s)
	case s.has("FROM rowlocks"):
		return d.list(s)
	case s.has("UPDATE invoice "):
		return d.update(s)
	case s.has("FROM invoice "):
		return d.look(s)
	}
	return fakedb.Response{}, fmt.Errorf("the desk doesn't know: %s", s.text)
}

// find returns the key in WHERE, and the row with the key.
func (d *desk) find(s statement) (key string, r row, ok bool, err error) {
	parts := make([]string, len(d.keys))
	for i, name := range d.keys {
		value, there := s.arg(name + " = @")
		if !there {
			return "", row{}, false, fmt.Errorf("the desk misses the column %s: %s", name, s.text)
		}
		parts[i] = fmt.Sprint(value)
		if text, isText := value.(string); isText {
			parts[i] = strconv.Quote(text)
		}
	}
	comma := ", "
	if d.dialect == sqlfence.SQLite {
		comma = ","
	}
	key = "[" + strings.Join(parts, comma) + "]"
	r, ok = d.tables.rows[key]
	return key, r, ok, nil
}

func (d *desk) live(r row) bool {
	return r.by != nil && r.by != int64(0) && r.by != "" && r.expiry.After(d.now)
}

// stamp is a time as rowlock reads it.
func (d *desk) stamp(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.UnixMicro()
}

func (d *desk) term(arg any) time.Duration {
	if d.dialect == sqlfence.Postgres {
		return time.Duration(arg.(int64)) * time.Microsecond
	}
	return time.Duration(arg.(int64)) * time.Millisecond
}

// rowState returns the columns of a row that rowlock reads.
func (d *desk) rowState(r row) []any {
	by := r.by
	if by != nil {
		by = fmt.Sprint(by)
	}
	return []any{r.serial, by, d.stamp(r.since), d.stamp(r.expiry), d.live(r)}
}

// loads matches the end of a lockUpdate's columns, and the loaded columns.
var loads = regexp.MustCompile(`(?:rowlock_ok|\), 1)(?:, (total))?(?:, (total))?(?: \)|$)`)

// update executes an UPDATE: a lockUpdate, a statement that frees or transfers a lock, or the work of a save.
func (d *desk) update(s statement) (answer fakedb.Response, err error) {
	key, r, ok, err := d.find(s)
	if err != nil || !ok {
		return answer, err
	}
	loaded := loads.FindStringSubmatch(s.text)
	lockUpdate := s.has("rowlock_granted") || s.has("typeof("+d.serial)
	set := s.between(" SET ", " WHERE ")
	where := s.between(" WHERE ", " RETURNING ")
	granted := d.allowed(r, where)
	if granted {
		d.assign(&r, set)
		d.tables.rows[key] = r
		answer.Affected = 1
	}
	switch {
	case lockUpdate && loaded == nil:
		return answer, fmt.Errorf("the desk has the column total to load: %s", s.text)
	case lockUpdate && (granted || d.dialect == sqlfence.Postgres):
		values := append(d.rowState(r), granted)
		if d.dialect == sqlfence.Postgres {
			values = append(values, nil, nil, nil, nil) // the columns of the row's new state
		}
		for _, column := range loaded[1:] {
			if column != "" {
				values = append(values, r.total)
			}
		}
		answer.Rows = [][]any{values}
	case !lockUpdate && granted && s.has(" RETURNING "):
		answer.Rows = [][]any{d.rowState(r)}
	}
	return answer, nil
}

// allowed evaluates where's conditions. rowlock writes no others.
func (d *desk) allowed(r row, where statement) bool {
	by := d.by
	if where.has("typeof("+d.serial) || where.has("CAST("+d.serial) {
		if _, integer := r.serial.(int64); !integer {
			return false
		}
	}
	if serial, ok := where.arg(d.serial + " = CAST(@"); ok && serial != r.serial {
		return false
	}
	if user, ok := where.arg(by + " = @"); ok && user != r.by {
		mayTake := where.has(d.expiry + " <= ")
		if !mayTake || d.live(r) {
			return false
		}
	}
	if user, ok := where.arg("CAST(" + by + " AS text) = @"); ok && (r.by == nil || user != fmt.Sprint(r.by)) {
		return false
	}
	if _, since, ok := strings.Cut(where.text, d.since); ok {
		if stamp, ok := (statement{since, where.args}).arg("= CAST(@"); ok && stamp != d.stamp(r.since) {
			return false
		}
	}
	return true
}

func (d *desk) assign(r *row, set statement) {
	by, _ := set.arg(d.by + " = @")
	if total, ok := set.arg("total = @"); ok {
		r.total = total.(int64)
	}
	if set.has("serial = serial + 1") {
		r.serial = r.serial.(int64) + 1
	}
	if set.has(d.since + " = ") {
		// The time stays for the same holder, if the lock is live or the statement has no condition on this.
		keeps := set.has(d.since+" = CASE") && r.by == by && (d.live(*r) || !set.has(d.expiry+" > "))
		if !keeps || r.since.IsZero() {
			r.since = d.now
		}
	}
	if ttl, ok := set.arg("+ CAST(@"); ok {
		r.expiry = d.now.Add(d.term(ttl))
	} else if set.has(d.expiry + " = NULL") {
		r.expiry = time.Time{}
	}
	if set.has(d.by + " = ") {
		r.by = by
	}
}

// look is a SELECT of the table.
func (d *desk) look(s statement) (answer fakedb.Response, err error) {
	_, r, ok, err := d.find(s)
	if err != nil || !ok {
		return answer, err
	}
	answer.Affected = 1
	selected := statement{strings.Split(s.text, " FROM invoice ")[0], s.args}
	if user, ok := selected.arg(d.by + " = @"); ok {
		answer.Rows = [][]any{{d.live(r), r.by == user}}
	} else if selected.has(d.serial) {
		answer.Rows = [][]any{d.rowState(r)}
	} else if selected.text == "SELECT total" {
		answer.Rows = [][]any{{r.total}}
	}
	return answer, nil
}
