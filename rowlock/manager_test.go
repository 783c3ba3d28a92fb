package rowlock_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/rowlock"
)

func TestNewManagerRefusesWhatContradicts(t *testing.T) {
	db := sql.OpenDB(fakedb.New(nil))
	defer db.Close()
	lite := rowlock.WithDialect(sqlfence.SQLite)
	for _, test := range []struct {
		db   *sql.DB
		opts []rowlock.Option
		want string // part of the error; empty: none
	}{
		{db, []rowlock.Option{lite}, ""},
		{nil, nil, "nil database"},
		{db, nil, "name its dialect with WithDialect"},
		{db, []rowlock.Option{lite, rowlock.WithDialect(sqlfence.Postgres)}, "two dialects"},
		{db, []rowlock.Option{rowlock.WithDialect(99)}, "not supported"},
		{db, []rowlock.Option{lite, nil}, "nil option"},
		{db, []rowlock.Option{lite, rowlock.WithKey("id")}, "WithKey is an option of a Table"},
		{db, []rowlock.Option{lite, rowlock.WithSerial("serial")}, "WithSerial is an option of a Table"},
		{db, []rowlock.Option{lite, rowlock.WithColumns("a", "b", "c")}, "WithColumns is an option of a Table"},
		{db, []rowlock.Option{lite, rowlock.WithTTL(time.Minute)}, "WithTTL is an option of a Table"},
		{db, []rowlock.Option{lite, rowlock.WithNobody(nil)}, "WithNobody is an option of a Table"},
		{db, []rowlock.Option{lite, rowlock.WithManager(new(rowlock.Manager))}, "WithManager is an option of a Table"},
		{db, []rowlock.Option{nil, rowlock.WithTTL(0)}, "manager: nil option\nWithTTL: the TTL 0s is less than 1ms\nWithTTL is an option of a Table, not of a Manager\nunknown driver"},
	} {
		m, err := rowlock.NewManager(test.db, test.opts...)
		if (m != nil) != (test.want == "") || errors.Is(err, sqlfence.ErrInvalid) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("NewManager = %v, %v; want %q", m, err, test.want)
		}
	}
}

// Setup creates the table once, and doesn't fail if another process has just created it.
func TestSetupCreatesTheTableOnce(t *testing.T) {
	eachDialect(t, func(t *testing.T, d *desk) {
		d.tables.held = nil
		table, m := d.managed(t)
		if _, err := table.Request(t.Context(), ada); err == nil || d.row().by != nil {
			t.Errorf("a Request before Setup: %v, %+v", err, d.row())
		}
		for range 2 {
			if err := m.Setup(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := table.Request(t.Context(), ada); err != nil {
			t.Error(err)
		}
		d.Sent()
		if err := m.Setup(t.Context()); err != nil || strings.Contains(strings.Join(texts(d.Sent()), ""), "CREATE") {
			t.Errorf("Setup where the table is there: %v, and it creates something", err)
		}
		d.tables.held = nil
		for code, want := range map[string]bool{"23505": true, "42P07": true, "42710": true, "42501": false} {
			d.fails = func(c fakedb.Call) error {
				if !strings.HasPrefix(c.Query, "CREATE TABLE") {
					return nil
				}
				return sqlState(code)
			}
			if err := m.Setup(t.Context()); (err == nil) != want || err != nil && !errors.Is(err, sqlState(code)) {
				t.Errorf("Setup, where the database says %s: %v", code, err)
			}
		}
		d.fails = func(fakedb.Call) error { return errors.New("lost") }
		if err := m.Setup(t.Context()); err == nil {
			t.Error("Setup succeeds where it can't look for the table")
		}
	})
}

// wantHeld compares what rowlocks holds with "row user session".
func (d *desk) wantHeld(t *testing.T, what string, want ...string) {
	t.Helper()
	var got []string
	for key, h := range d.tables.held {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", key, h.user, h.session)))
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("after %s rowlocks holds %q, want %q", what, got, want)
	}
}

// The table rowlocks has each lock, by whichever method it is taken, kept or freed.
func TestManagerFollows(t *testing.T) {
	eachDialect(t, func(t *testing.T, d *desk) {
		table, m := d.managed(t)
		do := func(what string, err error, want ...string) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			d.wantHeld(t, what, want...)
		}
		session := func(name string) rowlock.Edit {
			edit := ada
			edit.Session = name
			return edit
		}
		var total int
		do("Request", second(table.Request(t.Context(), ada)), "[7] ada s1")
		do("Renew", second(table.Renew(t.Context(), session("s2"))), "[7] ada s2")
		do("LoadLocked", second(table.LoadLocked(t.Context(), session("s3"), "total", &total)), "[7] ada s3")
		do("SaveKeep", second(table.SaveKeep(t.Context(), session("s4"), raise)), "[7] ada s4")
		do("Transfer", second(table.Transfer(t.Context(), 7, "bob")), "[7] bob")
		do("a release of another's", table.Release(t.Context(), 7, "ada"), "[7] bob")
		if err := second(table.Request(t.Context(), rowlock.Edit{ID: 7, Serial: 2, User: "ada"})); !errors.Is(err, sqlfence.ErrLocked) {
			t.Errorf("a request for bob's: %v", err)
		}
		d.wantHeld(t, "a refusal", "[7] bob")
		do("Release", table.Release(t.Context(), 7, "bob"))
		do("Request", second(table.Request(t.Context(), rowlock.Edit{ID: 7, Serial: 2, User: "bob"})), "[7] bob")
		do("Transfer to nobody", second(table.Transfer(t.Context(), 7, nil)))
		do("Request", second(table.Request(t.Context(), rowlock.Edit{ID: 7, Serial: 2, User: "bob"})), "[7] bob")
		do("SaveRelease", table.SaveRelease(t.Context(), rowlock.Edit{ID: 7, Serial: 2, User: "bob"}, raise))

		d.now = noon.Add(time.Minute)
		do("Request", second(table.Request(t.Context(), rowlock.Edit{ID: 7, Serial: 3, User: 12, Session: "s5"})), "[7] 12 s5")
		locks, err := m.Locks(t.Context(), rowlock.Filter{})
		want := []rowlock.HeldLock{{
			Table: "invoice", Row: "[7]", User: "12", Session: "s5",
			Since: d.now, Expiry: d.now.Add(10 * time.Minute), Heartbeat: d.now,
		}}
		if err != nil || !slices.Equal(locks, want) {
			t.Errorf("Locks = %+v, %v; want %+v", locks, err, want)
		}
	})
}

// crowd puts four locks into the tables: of ada's sessions s1 and s2, of bob
// without a session, and of cem's s3, whose time has run out.
func (d *desk) crowd() {
	d.tables = tables{map[string]row{}, map[string]held{}}
	for i, lock := range []struct {
		user, session string
		left          time.Duration
	}{{"ada", "s1", time.Hour}, {"ada", "s2", time.Hour}, {"bob", "", time.Hour}, {"cem", "s3", -time.Second}} {
		key := fmt.Sprintf("[%d]", i+1)
		since := d.now.Add(-10 * time.Minute)
		d.tables.rows[key] = row{total: 100, serial: int64(1), by: lock.user, since: since, expiry: d.now.Add(lock.left)}
		d.tables.held[key] = held{"invoice", lock.user, lock.session, since, d.now.Add(lock.left), since}
	}
}

func TestLocksFilters(t *testing.T) {
	eachDialect(t, func(t *testing.T, d *desk) {
		_, m := d.managed(t)
		d.crowd()
		for _, test := range []struct {
			filter rowlock.Filter
			want   string
		}{
			{rowlock.Filter{}, "[1] [2] [3]"},
			{rowlock.Filter{Table: "invoice"}, "[1] [2] [3]"},
			{rowlock.Filter{Table: "order"}, ""},
			{rowlock.Filter{Row: " [ 2 ]"}, "[2]"},
			{rowlock.Filter{User: "ada"}, "[1] [2]"},
			{rowlock.Filter{User: "cem"}, ""},
			{rowlock.Filter{Table: "invoice", Row: "[2]", User: "bob"}, ""},
		} {
			locks, err := m.Locks(t.Context(), test.filter)
			var got []string
			for _, l := range locks {
				got = append(got, l.Row)
			}
			if err != nil || strings.Join(got, " ") != test.want {
				t.Errorf("Locks(%+v) = %q, %v; want %q", test.filter, got, err, test.want)
			}
		}
		d.Sent()
		for _, bad := range []rowlock.Filter{{Row: "7"}, {Row: "[1.5]"}, {User: 0}} {
			if _, err := m.Locks(t.Context(), bad); !errors.Is(err, sqlfence.ErrInvalid) || len(d.Sent()) != 0 {
				t.Errorf("Locks(%+v) = %v, want a refusal before anything is sent", bad, err)
			}
		}
	})
}

func TestFreeing(t *testing.T) {
	eachDialect(t, func(t *testing.T, d *desk) {
		_, m := d.managed(t)
		for _, test := range []struct {
			name  string
			free  func() (int, error)
			freed []string
		}{
			{"FreeUser", func() (int, error) { return m.FreeUser(t.Context(), "ada") }, []string{"[1]", "[2]"}},
			{"FreeUser of one who has none", func() (int, error) { return m.FreeUser(t.Context(), "dan") }, nil},
			{"FreeSession", func() (int, error) { return m.FreeSession(t.Context(), "s2") }, []string{"[2]"}},
			{"FreeSilent", func() (int, error) { return m.FreeSilent(t.Context(), 10*time.Minute) }, []string{"[1]", "[2]", "[4]"}},
			{"FreeSilent of a longer silence", func() (int, error) { return m.FreeSilent(t.Context(), 11*time.Minute) }, nil},
			{"FreeSilent after a heartbeat", func() (int, error) {
				if err := m.Heartbeat(t.Context(), "s1"); err != nil {
					return 0, err
				}
				return m.FreeSilent(t.Context(), 10*time.Minute)
			}, []string{"[2]", "[4]"}},
			{"FreeAll", func() (int, error) { return m.FreeAll(t.Context()) }, []string{"[1]", "[2]", "[3]", "[4]"}},
		} {
			d.crowd()
			n, err := test.free()
			if err != nil || n != len(test.freed) {
				t.Errorf("%s = %d, %v; want %d", test.name, n, err, len(test.freed))
			}
			for key, r := range d.tables.rows {
				_, known := d.tables.held[key]
				if freed := slices.Contains(test.freed, key); freed != (r.by == nil) || freed == known || freed && (!r.expiry.IsZero() || !r.since.Equal(d.now)) {
					t.Errorf("%s left %s as %+v, known to the Manager: %v", test.name, key, r, known)
				}
			}
		}
		d.crowd()
		before := d.state()
		d.Sent()
		for _, bad := range []error{
			m.Heartbeat(t.Context(), ""),
			second(m.FreeSession(t.Context(), "")),
			second(m.FreeSilent(t.Context(), time.Millisecond-1)),
			second(m.FreeUser(t.Context(), "")),
		} {
			if !errors.Is(bad, sqlfence.ErrInvalid) || !strings.HasPrefix(bad.Error(), "rowlock: ") || len(d.Sent()) != 0 || d.state() != before {
				t.Errorf("err = %v, want a refusal before anything is sent", bad)
			}
		}
	})
}

// The Manager leaves a lock alone that has changed since it listed the locks.
func TestFreeingComesTooLate(t *testing.T) {
	for name, change := range map[string]func(d *desk){
		"taken by another": func(d *desk) {
			d.lock("bob", time.Hour)
			d.tables.held["[7]"] = held{"invoice", "bob", "s1", d.now, d.now, d.now}
		},
		"taken again": func(d *desk) {
			h := d.tables.held["[7]"]
			h.since = d.now
			d.tables.held["[7]"] = h
		},
		"kept alive by another session": func(d *desk) {
			h := d.tables.held["[7]"]
			h.session = "s2"
			d.tables.held["[7]"] = h
		},
		"a sign of life": func(d *desk) {
			h := d.tables.held["[7]"]
			h.heartbeat = d.now
			d.tables.held["[7]"] = h
		},
		"not in the row": func(d *desk) { d.set(func(r *row) { r.by = "bob" }) },
		"later in the row": func(d *desk) {
			d.set(func(r *row) { r.since = d.now })
		},
		"gone": func(d *desk) { delete(d.tables.rows, "[7]") },
	} {
		t.Run(name, func(t *testing.T) {
			eachDialect(t, func(t *testing.T, d *desk) {
				d.adaHolds()
				_, m := d.managed(t)
				var changed row
				d.fails = func(c fakedb.Call) error {
					if c.Kind == fakedb.Begin {
						change(d)
						changed = d.row()
					}
					return nil
				}
				if n, err := m.FreeSilent(t.Context(), time.Second); n != 0 || err != nil || d.row() != changed {
					t.Errorf("freed %d, %v; the row was %+v and is %+v", n, err, changed, d.row())
				}
			})
		})
	}
}

// A Manager frees its other locks even if one lock can't be freed, and leaves the locks of other Managers' tables.
func TestFreeingGoesOn(t *testing.T) {
	eachDialect(t, func(t *testing.T, d *desk) {
		_, m := d.managed(t)
		d.crowd()
		d.tables.held["[5]"] = held{table: "order", user: "ada"}
		d.tables.held["[1.5]"] = held{table: "invoice", user: "ada"}
		broken := errors.New("broken")
		begun := 0
		d.fails = func(c fakedb.Call) error {
			if c.Kind == fakedb.Begin {
				begun++
			}
			if c.Kind == fakedb.Begin && begun == 1 {
				return broken
			}
			return nil
		}
		n, err := m.FreeAll(t.Context())
		if n != 3 || !errors.Is(err, broken) || !strings.Contains(err.Error(), "[1.5]") {
			t.Errorf("FreeAll = %d, %v", n, err)
		}
		d.wantHeld(t, "FreeAll", "[1.5] ada", "[1] ada s1", "[5] ada")
	})
}

// A list that can't be read to its end is an error, and keeps no connection.
func TestLocksFailHalfway(t *testing.T) {
	lock := []any{"invoice", "[7]", "ada", "", int64(0), int64(1), int64(0)}
	odd := slices.Clone(lock)
	odd[0] = nil
	broken := errors.New("broken")
	for want, answer := range map[string]fakedb.Response{
		"converting NULL to string": {Rows: [][]any{lock, odd, lock}},
		"broken":                    {Rows: [][]any{lock}, RowsErr: broken},
	} {
		db := sql.OpenDB(fakedb.New(fakedb.Script(answer)))
		defer db.Close()
		m, err := rowlock.NewManager(db, rowlock.WithDialect(sqlfence.SQLite))
		if err != nil {
			t.Fatal(err)
		}
		locks, err := m.Locks(t.Context(), rowlock.Filter{})
		if err == nil || !strings.HasPrefix(err.Error(), "rowlock: list: ") || !strings.Contains(err.Error(), want) || len(locks) != 0 {
			t.Errorf("Locks = %+v, %v; want %q", locks, err, want)
		}
		if n := db.Stats().InUse; n != 0 {
			t.Errorf("%q: %d connections are still in use", want, n)
		}
	}
}
