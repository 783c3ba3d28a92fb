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

// adasSince returns the start of ada's lock after she has requested it: of her live lock, or now, if she had none.
func (d *desk) adasSince() time.Time {
	if r := d.row(); r.by == "ada" && d.live(r) {
		return r.since
	}
	return noon
}

func TestTaking(t *testing.T) {
	var total int
	for name, take := range map[string]func(context.Context, *rowlock.Table) (rowlock.Lock, error){
		"Request": func(ctx context.Context, table *rowlock.Table) (rowlock.Lock, error) {
			return table.Request(ctx, ada)
		},
		"Renew": func(ctx context.Context, table *rowlock.Table) (rowlock.Lock, error) {
			return table.Renew(ctx, ada)
		},
		"LoadLocked": func(ctx context.Context, table *rowlock.Table) (rowlock.Lock, error) {
			return table.LoadLocked(ctx, ada, "total", &total) // at any version
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachState(t, func(t *testing.T, d *desk, state int) {
				want := map[string]error{
					"Request": lockStates[state].request, "Renew": lockStates[state].renew,
					"LoadLocked": lockStates[state].load,
				}[name]
				before, since, serial := d.state(), d.adasSince(), d.row().serial
				total = 0
				lock, err := take(t.Context(), d.table(t))
				if want != nil {
					d.wantRefused(t, name, err, want, before)
					if lock != (rowlock.Lock{}) || total != 0 {
						t.Errorf("%s was refused, but returned %+v, total %d", name, lock, total)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				d.wantLock(t, name, lock, since, serial.(int64))
				if loads := name == "LoadLocked"; loads != (total == 100) {
					t.Errorf("%s: total %d", name, total)
				}
			})
		})
	}
}

// saves are the methods that save, by ada's edit of version 1.
var saves = map[string]func(context.Context, *rowlock.Table, func(context.Context, *sql.Tx) error) (rowlock.Lock, error){
	"SaveRelease": func(ctx context.Context, table *rowlock.Table, work func(context.Context, *sql.Tx) error) (rowlock.Lock, error) {
		return rowlock.Lock{}, table.SaveRelease(ctx, ada, work)
	},
	"SaveKeep": func(ctx context.Context, table *rowlock.Table, work func(context.Context, *sql.Tx) error) (rowlock.Lock, error) {
		return table.SaveKeep(ctx, ada, work)
	},
}

func TestSaving(t *testing.T) {
	for name, save := range saves {
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
		})
	}
}

// The error of a save is returned unchanged, and neither the save's changes nor the lock stays.
func TestSaveFails(t *testing.T) {
	for name, save := range saves {
		t.Run(name, func(t *testing.T) {
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

// Current, IsLockedBy and Lockable answer as a Request would.
func TestQuestionsAgreeWithARequest(t *testing.T) {
	eachState(t, func(t *testing.T, d *desk, i int) {
		state, table, before := lockStates[i], d.table(t), d.state()
		lock, err := table.Current(t.Context(), 7)
		locked := lock.By != ""
		mine, err3 := table.IsLockedBy(t.Context(), 7, "ada")
		bobs, err4 := table.IsLockedBy(t.Context(), 7, "bob")
		lockable, err5 := table.Lockable(t.Context(), 7, "ada")
		for _, err := range []error{err, err3, err4, err5} {
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

// Release frees the user's own lock, whatever the row's version. It frees no other user's lock.
func TestReleaseFreesOnlyTheUsersLock(t *testing.T) {
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

// A lock's term counts from the database's clock. The edit's TTL, if set, replaces the table's.
func TestTermsCountFromTheDatabasesClock(t *testing.T) {
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
