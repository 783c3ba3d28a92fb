package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/fakedb"
	"github.com/sqlfence/sqlfence/rowlock"
)

// The states that ada may find row 7 in, with an edit of version 1.
var lockStates = []struct {
	name string
	set  func(d *desk)
	// what is returned by Request, SaveRelease and SaveKeep; by LoadLocked; by Renew
	request, load, renew error
	locked, mine         bool
}{
	{"never locked", func(*desk) {}, nil, nil, rowlock.ErrNotHeld, false, false},
	{"nobody's, as NULL", func(d *desk) { d.lock(nil, time.Hour) }, nil, nil, rowlock.ErrNotHeld, false, false},
	{"nobody's, as 0", func(d *desk) { d.lock(int64(0), time.Hour) }, nil, nil, rowlock.ErrNotHeld, false, false},
	{"nobody's, as empty", func(d *desk) { d.lock("", time.Hour) }, nil, nil, rowlock.ErrNotHeld, false, false},
	{"bob's, lapsed", func(d *desk) { d.lock("bob", 0) }, nil, nil, rowlock.ErrNotHeld, false, false},
	{"bob's, live", func(d *desk) { d.lock("bob", time.Hour) }, sqlfence.ErrLocked, sqlfence.ErrLocked, sqlfence.ErrLocked, true, false},
	{"ada's, live", func(d *desk) { d.lock("ada", time.Hour) }, nil, nil, nil, true, true},
	{"ada's, lapsed", func(d *desk) { d.lock("ada", -time.Second) }, nil, nil, nil, false, false},
	{"changed, free", func(d *desk) { d.set(func(r *row) { r.serial = int64(2) }) }, sqlfence.ErrConflict, nil, sqlfence.ErrConflict, false, false},
	{"changed, bob's", func(d *desk) {
		d.lock("bob", time.Hour)
		d.set(func(r *row) { r.serial = int64(2) })
	}, sqlfence.ErrConflict, sqlfence.ErrLocked, sqlfence.ErrConflict, true, false},
	{"gone", func(d *desk) { delete(d.tables.rows, "[7]") }, sqlfence.ErrGone, sqlfence.ErrGone, sqlfence.ErrGone, false, false},
}

// eachState runs test in each state, on a desk of each dialect.
func eachState(t *testing.T, test func(t *testing.T, d *desk, state int)) {
	for i, state := range lockStates {
		t.Run(state.name, func(t *testing.T) {
			eachDialect(t, func(t *testing.T, d *desk) {
				state.set(d)
				test(t, d, i)
			})
		})
	}
}

// wantRefused fails the test unless err is want, with its facts, and no row has changed.
func (d *desk) wantRefused(t *testing.T, what string, err, want error, before string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v, want %v", what, err, want)
	}
	if after := d.state(); after != before {
		t.Errorf("%s was refused, but changed\n%s to\n%s", what, before, after)
	}
	var locked *sqlfence.LockedError
	if errors.As(err, &locked) {
		if want := (sqlfence.LockedError{Table: "invoice", By: "bob", Since: noon.Add(-time.Minute), Expiry: noon.Add(time.Hour)}); *locked != want {
			t.Errorf("%s: %+v, want %+v", what, *locked, want)
		}
	}
	var conflict *sqlfence.ConflictError
	if errors.As(err, &conflict) {
		if want := (sqlfence.ConflictError{Table: "invoice", Expected: 1, Current: 2}); *conflict != want {
			t.Errorf("%s: %+v, want %+v", what, *conflict, want)
		}
	}
	if want == sqlfence.ErrGone && !strings.Contains(err.Error(), `table "invoice", key 7`) {
		t.Errorf("%s: %v doesn't say which row", what, err)
	}
}

// wantLock fails the test unless ada has the lock now, for the default term, and
// both the Lock returned and the row say so.
func (d *desk) wantLock(t *testing.T, what string, lock rowlock.Lock, since time.Time, serial int64) {
	t.Helper()
	if want := (rowlock.Lock{Serial: serial, By: "ada", Since: since, Expiry: noon.Add(10 * time.Minute)}); lock != want {
		t.Errorf("%s = %+v, want %+v", what, lock, want)
	}
	if r := d.row(); r.by != "ada" || !r.since.Equal(since) || !r.expiry.Equal(noon.Add(10*time.Minute)) || r.serial != serial {
		t.Errorf("%s left %+v", what, r)
	}
}

// adasSince is since when ada has held the lock, once she has it: one that has lapsed
// begins anew.
func (d *desk) adasSince() time.Time {
	if r := d.row(); r.by == "ada" && d.live(r) {
		return r.since
	}
	return noon
}

func TestTaking(t *testing.T) {
	var total int
	var changed bool
	for name, take := range map[string]func(context.Context, *rowlock.Table) (rowlock.Lock, error){
		"Request": func(ctx context.Context, table *rowlock.Table) (rowlock.Lock, error) {
			return table.Request(ctx, ada)
		},
		"Renew": func(ctx context.Context, table *rowlock.Table) (rowlock.Lock, error) {
			return table.Renew(ctx, ada)
		},
		"LoadLocked": func(ctx context.Context, table *rowlock.Table) (rowlock.Lock, error) {
			return table.LoadLocked(ctx, rowlock.Edit{ID: 7, User: "ada"}, "total", &total)
		},
		"ReloadLocked": func(ctx context.Context, table *rowlock.Table) (lock rowlock.Lock, err error) {
			lock, changed, err = table.ReloadLocked(ctx, ada, "total", &total)
			return lock, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachState(t, func(t *testing.T, d *desk, state int) {
				want := map[string]error{
					"Request": lockStates[state].request, "Renew": lockStates[state].renew,
					"LoadLocked": lockStates[state].load, "ReloadLocked": lockStates[state].load,
				}[name]
				before, since, serial := d.state(), d.adasSince(), d.row().serial
				total, changed = 0, false
				lock, err := take(t.Context(), d.table(t))
				if want != nil {
					d.wantRefused(t, name, err, want, before)
					if lock != (rowlock.Lock{}) || total != 0 || changed {
						t.Errorf("%s was refused, but returned %+v, total %d, changed %v", name, lock, total, changed)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				d.wantLock(t, name, lock, since, serial.(int64))
				if loads := strings.Contains(name, "oad"); loads != (total == 100) || changed != (name == "ReloadLocked" && serial != int64(1)) {
					t.Errorf("%s: total %d, changed %v", name, total, changed)
				}
			})
		})
	}
}

func TestSaving(t *testing.T) {
	for name, save := range map[string]func(context.Context, *rowlock.Table, func(context.Context, *sql.Tx) error) (rowlock.Lock, error){
		"SaveRelease": func(ctx context.Context, table *rowlock.Table, work func(context.Context, *sql.Tx) error) (rowlock.Lock, error) {
			return rowlock.Lock{}, table.SaveRelease(ctx, ada, work)
		},
		"SaveKeep": func(ctx context.Context, table *rowlock.Table, work func(context.Context, *sql.Tx) error) (rowlock.Lock, error) {
			return table.SaveKeep(ctx, ada, work)
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachState(t, func(t *testing.T, d *desk, state int) {
				before, since := d.state(), d.adasSince()
				called := false
				lock, err := save(t.Context(), d.table(t), func(ctx context.Context, tx *sql.Tx) error {
					called = true
					return raise(ctx, tx)
				})
				if want := lockStates[state].request; want != nil {
					d.wantRefused(t, name, err, want, before)
					if called {
						t.Error("the save was called")
					}
					return
				}
				if err != nil || d.row().total != 120 {
					t.Fatalf("%v, %+v", err, d.row())
				}
				if name == "SaveKeep" {
					d.wantLock(t, name, lock, since, 2)
				} else if r := d.row(); r.by != nil || !r.since.Equal(noon) || !r.expiry.IsZero() || r.serial != int64(2) {
					t.Errorf("%s left %+v", name, r)
				}
			})
			// What the save returns comes as it is, and neither it nor the lock stays.
			eachDialect(t, func(t *testing.T, d *desk) {
				d.lock("ada", time.Hour)
				before := d.state()
				stop := errors.New("stop")
				_, err := save(t.Context(), d.table(t), func(ctx context.Context, tx *sql.Tx) error {
					return errors.Join(raise(ctx, tx), stop)
				})
				if err == nil || err.Error() != "stop" || d.state() != before || d.owner != 0 {
					t.Errorf("%v left %s", err, d.state())
				}
				func() {
					defer func() {
						if p := recover(); p != stop {
							t.Errorf("recovered %v", p)
						}
					}()
					_, _ = save(t.Context(), d.table(t), func(ctx context.Context, tx *sql.Tx) error {
						if err := raise(ctx, tx); err != nil {
							return err
						}
						panic(stop)
					})
				}()
				if d.state() != before || d.owner != 0 {
					t.Errorf("a panic left %s", d.state())
				}
			})
		})
	}
}

// The questions answer as a Request would.
func TestQuestions(t *testing.T) {
	eachState(t, func(t *testing.T, d *desk, i int) {
		state, table, before := lockStates[i], d.table(t), d.state()
		lock, err := table.Current(t.Context(), 7)
		locked, err2 := table.IsLocked(t.Context(), 7)
		mine, err3 := table.IsLockedBy(t.Context(), 7, "ada")
		bobs, err4 := table.IsLockedBy(t.Context(), 7, "bob")
		lockable, err5 := table.Lockable(t.Context(), 7, "ada")
		for _, err := range []error{err, err2, err3, err4, err5} {
			if gone := state.request == sqlfence.ErrGone; gone != errors.Is(err, sqlfence.ErrGone) || !gone && err != nil {
				t.Error(err)
			}
		}
		if locked != state.locked || mine != state.mine || bobs != (locked && !mine) {
			t.Errorf("locked %v, ada's %v, bob's %v", locked, mine, bobs)
		}
		if want := state.request != sqlfence.ErrGone && (!locked || mine); lockable != want {
			t.Errorf("lockable %v, want %v", lockable, want)
		}
		var want rowlock.Lock
		want.Serial, _ = d.row().serial.(int64)
		if locked {
			want.By, want.Since, want.Expiry = fmt.Sprint(d.row().by), noon.Add(-time.Minute), noon.Add(time.Hour)
		}
		if lock != want {
			t.Errorf("Current = %+v, want %+v", lock, want)
		}
		if after := d.state(); after != before {
			t.Errorf("asking changed\n%s to\n%s", before, after)
		}
	})
}

// A release gives back the user's own lock, whatever the row's version, and
// nothing else.
func TestRelease(t *testing.T) {
	eachState(t, func(t *testing.T, d *desk, _ int) {
		before, r := d.state(), d.row()
		if err := d.table(t).Release(t.Context(), 7, "ada"); err != nil {
			t.Fatal(err)
		}
		if r.by != "ada" {
			if after := d.state(); after != before {
				t.Errorf("the release of another's lock changed\n%s to\n%s", before, after)
			}
		} else if want := (row{r.total, r.serial, nil, noon, time.Time{}}); d.row() != want {
			t.Errorf("left %+v, want %+v", d.row(), want)
		}
	})
}

func TestTransfer(t *testing.T) {
	eachState(t, func(t *testing.T, d *desk, state int) {
		table, r := d.table(t), d.row()
		gone := lockStates[state].request == sqlfence.ErrGone
		for to, want := range map[any]row{
			"bob": {r.total, r.serial, "bob", noon, noon.Add(10 * time.Minute)},
			nil:   {r.total, r.serial, nil, noon, time.Time{}},
		} {
			before := d.state()
			lock, err := table.Transfer(t.Context(), 7, to)
			if gone {
				d.wantRefused(t, "Transfer", err, sqlfence.ErrGone, before)
				continue
			}
			wantLock := rowlock.Lock{Serial: r.serial.(int64)}
			if to != nil {
				wantLock.By, wantLock.Since, wantLock.Expiry = "bob", noon, noon.Add(10*time.Minute)
			}
			if err != nil || lock != wantLock || d.row() != want {
				t.Errorf("Transfer to %v = %+v, %v; want %+v; it left %+v", to, lock, err, wantLock, d.row())
			}
		}
	})
	eachDialect(t, func(t *testing.T, d *desk) {
		for _, bad := range []error{
			second(d.table(t).Transfer(t.Context(), 7, "0")),
			second(d.table(t).Transfer(t.Context(), 7, "")),
			second(d.table(t).Transfer(t.Context(), 7, 0)),
			second(d.table(t).Transfer(t.Context(), nil, "bob")),
		} {
			if !errors.Is(bad, sqlfence.ErrInvalid) || len(d.Sent()) != 0 {
				t.Errorf("err = %v, want a refusal before anything is sent", bad)
			}
		}
	})
}

// What is wrong with an Edit, an id or a user is said by every method that takes
// one, and nothing is sent.
func TestBadInputIsNotSent(t *testing.T) {
	eachDialect(t, func(t *testing.T, d *desk) {
		table, m := d.managed(t)
		var total int
		save := func(context.Context, *sql.Tx) error { panic("called") }
		for _, bad := range []struct {
			id, user any
			want     string
		}{
			{nil, "ada", "the key is NULL"},
			{rowlock.CompositeKey{7, 8}, "ada", "2 values for a key of 1 columns"},
			{7, nil, "means nobody"},
			{7, 1.5, "want an integer or a text"},
		} {
			edit := rowlock.Edit{ID: bad.id, Serial: 1, User: bad.user}
			errs := map[string]error{
				"Request":     second(table.Request(t.Context(), edit)),
				"Renew":       second(table.Renew(t.Context(), edit)),
				"LoadLocked":  second(table.LoadLocked(t.Context(), edit, "total", &total)),
				"Release":     table.Release(t.Context(), bad.id, bad.user),
				"SaveRelease": table.SaveRelease(t.Context(), edit, save),
				"SaveKeep":    second(table.SaveKeep(t.Context(), edit, save)),
				"IsLockedBy":  second(table.IsLockedBy(t.Context(), bad.id, bad.user)),
				"Lockable":    second(table.Lockable(t.Context(), bad.id, bad.user)),
			}
			_, _, errs["ReloadLocked"] = table.ReloadLocked(t.Context(), edit, "total", &total)
			if bad.user == "ada" {
				errs["Current"] = second(table.Current(t.Context(), bad.id))
				errs["IsLocked"] = second(table.IsLocked(t.Context(), bad.id))
				errs["Transfer"] = second(table.Transfer(t.Context(), bad.id, nil))
			} else {
				errs["FreeUser"] = second(m.FreeUser(t.Context(), bad.user))
			}
			for name, err := range errs {
				if !errors.Is(err, sqlfence.ErrInvalid) || !strings.HasPrefix(err.Error(), "rowlock: ") || !strings.Contains(err.Error(), bad.want) {
					t.Errorf("%s of %v by %v = %v, want %q", name, bad.id, bad.user, err, bad.want)
				}
			}
		}
		for _, err := range []error{
			second(table.LoadLocked(t.Context(), ada, "", &total)),
			second(table.LoadLocked(t.Context(), ada, "total")),
		} {
			if !errors.Is(err, sqlfence.ErrInvalid) || !strings.Contains(err.Error(), "nothing to load") {
				t.Errorf("err = %v", err)
			}
		}
		if sent := d.Sent(); len(sent) != 0 {
			t.Errorf("sent %q", texts(sent))
		}
	})
}

// What is loaded has to fit the variables.
func TestLoadMismatch(t *testing.T) {
	eachDialect(t, func(t *testing.T, d *desk) {
		var total, again int
		var at time.Time
		table := d.table(t)
		if err := second(table.LoadLocked(t.Context(), ada, "total, total", &total, &again)); err != nil || total != 100 || again != 100 {
			t.Errorf("loaded %d and %d, %v", total, again, err)
		}
		for want, err := range map[string]error{
			"2 columns to load into 1 variables":       second(table.LoadLocked(t.Context(), ada, "total, total", &total)),
			"1 columns to load into 2 variables":       second(table.LoadLocked(t.Context(), ada, "total", &total, &again)),
			"unsupported Scan, storing driver.Value":   second(table.LoadLocked(t.Context(), ada, "total", &at)),
			`rowlock: load: table "invoice": the desk`: second(table.LoadLocked(t.Context(), ada, "no_such", &total)),
		} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "rowlock: load: ") {
				t.Errorf("err = %v, want %q", err, want)
			}
		}
	})
}

// A term counts from the database's clock, and is the edit's own if it has one.
func TestTerms(t *testing.T) {
	eachDialect(t, func(t *testing.T, d *desk) {
		table := d.table(t, rowlock.WithTTL(time.Minute))
		lock, err := table.Request(t.Context(), ada)
		if want := noon.Add(time.Minute); err != nil || !lock.Expiry.Equal(want) {
			t.Errorf("%+v, %v; want it until %v", lock, err, want)
		}
		longer := ada
		longer.TTL = time.Hour
		d.now = noon.Add(30 * time.Second)
		lock, err = table.Renew(t.Context(), longer)
		if want := d.now.Add(time.Hour); err != nil || !lock.Expiry.Equal(want) || !lock.Since.Equal(noon) {
			t.Errorf("%+v, %v; want it since %v until %v", lock, err, noon, want)
		}
		lock, err = table.Transfer(t.Context(), 7, "bob")
		if want := d.now.Add(time.Minute); err != nil || !lock.Expiry.Equal(want) {
			t.Errorf("%+v, %v; want it until %v", lock, err, want)
		}
		d.now = d.now.Add(time.Minute)
		if lock, err = table.Request(t.Context(), ada); err != nil || !lock.Since.Equal(d.now) {
			t.Errorf("%+v, %v; want bob's lapsed lock taken over", lock, err)
		}
	})
}

// The names of the columns, and what stands for nobody, are the options'.
func TestOptionsReachTheStatements(t *testing.T) {
	eachDialect(t, func(t *testing.T, d *desk) {
		d.keys, d.serial, d.by, d.since, d.expiry = []string{"region", "no"}, "version", "editor", "started", "ends"
		d.tables.rows = map[string]row{}
		key, comma := rowlock.CompositeKey{"eu", 7}, ","
		if d.dialect == sqlfence.Postgres {
			comma = ", "
		}
		spelled := `["eu"` + comma + "7]"
		d.tables.rows[spelled] = row{total: 100, serial: int64(3)}
		m, err := rowlock.NewManager(d.db, rowlock.WithDialect(d.dialect))
		if err != nil {
			t.Fatal(err)
		}
		for _, nobody := range []any{nil, int64(0), ""} {
			opts := []rowlock.Option{
				rowlock.WithKey("region", "no"), rowlock.WithSerial("version"), rowlock.WithColumns("editor", "started", "ends"),
				rowlock.WithNobody(nobody),
			}
			if nobody == nil {
				opts = append(opts, rowlock.WithManager(m))
			}
			table := d.table(t, opts...)
			lock, err := table.Request(t.Context(), rowlock.Edit{ID: key, Serial: 3, User: 12})
			if err != nil || lock.By != "12" || d.tables.rows[spelled].by != int64(12) {
				t.Errorf("%+v, %v; the row is %+v", lock, err, d.tables.rows[spelled])
			}
			if h := d.tables.held[spelled]; nobody == nil && h.user != "12" {
				t.Errorf("rowlocks has %+v", d.tables.held)
			}
			if err := table.Release(t.Context(), key, 12); err != nil || d.tables.rows[spelled].by != nobody {
				t.Errorf("after a release (%v) the row is %+v, want %#v for nobody", err, d.tables.rows[spelled], nobody)
			}
		}
	})
}

// A database may answer with the row and fail after it.
func TestErrorAfterTheRow(t *testing.T) {
	for _, dialect := range []sqlfence.Dialect{sqlfence.Postgres, sqlfence.SQLite} {
		broken := errors.New("broken")
		granted := []any{int64(1), "ada", int64(0), int64(1), true, true}
		db := sql.OpenDB(fakedb.New(fakedb.Script(fakedb.Answer{Rows: [][]any{granted}, RowsErr: broken})))
		defer db.Close()
		table, err := rowlock.New(db, "invoice", rowlock.WithDialect(dialect))
		if err != nil {
			t.Fatal(err)
		}
		if lock, err := table.Request(t.Context(), ada); !errors.Is(err, broken) || lock != (rowlock.Lock{}) {
			t.Errorf("%v: %+v, %v", dialect, lock, err)
		}
	}
}

// A version that is no integer is said to be none, and matches nothing.
func TestVersionIsNoInteger(t *testing.T) {
	d := newDesk(sqlfence.SQLite)
	defer d.db.Close()
	d.set(func(r *row) { r.serial = "1" })
	before := d.state()
	for name, err := range map[string]error{
		"Request":  second(d.table(t).Request(t.Context(), ada)),
		"SaveKeep": second(d.table(t).SaveKeep(t.Context(), ada, raise)),
	} {
		if err == nil || !strings.Contains(err.Error(), "holds 1 (string), want an integer") || d.state() != before {
			t.Errorf("%s = %v; %s", name, err, d.state())
		}
	}
}

// A row that takes no lock though nothing stands against it is an error and no
// endless loop.
func TestRowTakesNoLock(t *testing.T) {
	refused := make([]fakedb.Answer, 1000)
	for i := range refused {
		refused[i].Rows = [][]any{{int64(1), nil, nil, nil, false, false}}
	}
	db := sql.OpenDB(fakedb.New(fakedb.Script(refused...)))
	defer db.Close()
	table, err := rowlock.New(db, "invoice", rowlock.WithDialect(sqlfence.Postgres))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Request(t.Context(), ada); err == nil || !strings.Contains(err.Error(), "look for a trigger") {
		t.Errorf("err = %v", err)
	}
}
