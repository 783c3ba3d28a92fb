package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// rowLockStates are the states in which ada may find the row, with the results of her operations. Her edit is of
// version 1.
var rowLockStates = []struct {
	name string
	set  func(t *testing.T, d *desk)
	// what is returned by Request, SaveRelease and SaveKeep; by LoadLocked; by Renew
	request, load, renew error
	locked, mine         bool
}{
	{"never locked", func(*testing.T, *desk) {}, nil, nil, rowlock.ErrNotHeld, false, false},
	{"free as zero or empty", func(t *testing.T, d *desk) { d.set(t, d.nobody(), d.time(1800)) }, nil, nil, rowlock.ErrNotHeld, false, false},
	{"free as NULL, with an expiry", func(t *testing.T, d *desk) { d.set(t, "NULL", d.time(1800)) }, nil, nil, rowlock.ErrNotHeld, false, false},
	{"bob's without an expiry", func(t *testing.T, d *desk) { d.set(t, d.user(d.bob), "NULL") }, nil, nil, rowlock.ErrNotHeld, false, false},
	{"bob's, lapsed", func(t *testing.T, d *desk) { d.set(t, d.user(d.bob), d.time(-1)) }, nil, nil, rowlock.ErrNotHeld, false, false},
	{"bob's, live", func(t *testing.T, d *desk) { d.set(t, d.user(d.bob), d.time(1800)) }, sqlfence.ErrLocked, sqlfence.ErrLocked, sqlfence.ErrLocked, true, false},
	{"ada's, live", func(t *testing.T, d *desk) { d.set(t, d.user(d.ada), d.time(1800)) }, nil, nil, nil, true, true},
	{"ada's, lapsed", func(t *testing.T, d *desk) { d.set(t, d.user(d.ada), d.time(-1)) }, nil, nil, nil, false, false},
	{"ada's without times", func(t *testing.T, d *desk) { d.exec(t, "UPDATE invoice SET editedby = "+d.user(d.ada)) }, nil, nil, nil, false, false},
	{"changed, free", func(t *testing.T, d *desk) { d.exec(t, "UPDATE invoice SET serial = 2") }, sqlfence.ErrConflict, nil, sqlfence.ErrConflict, false, false},
	{"changed, bob's", func(t *testing.T, d *desk) {
		d.set(t, d.user(d.bob), d.time(1800))
		d.exec(t, "UPDATE invoice SET serial = 2")
	}, sqlfence.ErrConflict, sqlfence.ErrLocked, sqlfence.ErrConflict, true, false},
	{"changed, ada's", func(t *testing.T, d *desk) {
		d.set(t, d.user(d.ada), d.time(1800))
		d.exec(t, "UPDATE invoice SET serial = 2")
	}, sqlfence.ErrConflict, nil, sqlfence.ErrConflict, true, true},
	{"gone", func(t *testing.T, d *desk) { d.exec(t, "DELETE FROM invoice") }, sqlfence.ErrGone, sqlfence.ErrGone, sqlfence.ErrGone, false, false},
}

// nobody returns SQL for the value, other than NULL, that stands for no user.
func (d *desk) nobody() string {
	if _, ok := d.ada.(int); ok {
		return "0"
	}
	return "''"
}

func TestRowLockRules(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		for _, state := range rowLockStates {
			t.Run(state.name, func(t *testing.T) {
				for _, op := range rowLockOperations {
					d.exec(t, "DELETE FROM invoice")
					d.exec(t, "INSERT INTO invoice (id, total) VALUES (7, 10)")
					state.set(t, d)
					before := d.row(t)
					err := d.do(t.Context(), func(table *rowlock.Table) error { return op.run(t, d, table) })
					want := map[string]error{"LoadLocked": state.load, "ReloadLocked": state.load, "Renew": state.renew}[op.name]
					if _, saves := rowLockSaves[op.name]; saves || op.name == "Request" {
						want = state.request
					}
					switch {
					case want == nil && err != nil, !errors.Is(err, want):
						t.Errorf("%s = %v, want %v", op.name, err, want)
					case want == sqlfence.ErrLocked:
						d.wantLocked(t, err, d.bob)
					case want == sqlfence.ErrConflict:
						wantLockConflict(t, err, 1, 2)
					}
					if want != nil {
						if after := d.row(t); after != before {
							t.Errorf("%s was refused, but changed %s to %s", op.name, before, after)
						}
						continue
					}
					op.check(t, d)
				}
			})
		}
	})
}

var rowLockSaves = map[string]bool{"SaveRelease": true, "SaveKeep": true}

// rowLockOperations are ada's possible operations. check checks the row afterwards.
var rowLockOperations = []struct {
	name  string
	run   func(t *testing.T, d *desk, table *rowlock.Table) error
	check func(t *testing.T, d *desk)
}{
	{"Request", func(t *testing.T, d *desk, table *rowlock.Table) error {
		_, err := table.Request(t.Context(), edit(d.ada))
		return err
	}, func(t *testing.T, d *desk) { d.adaHolds(t, "total = 10 AND serial = 1") }},
	{"Renew", func(t *testing.T, d *desk, table *rowlock.Table) error {
		_, err := table.Renew(t.Context(), edit(d.ada))
		return err
	}, func(t *testing.T, d *desk) { d.adaHolds(t, "total = 10 AND serial = 1") }},
	{"LoadLocked", func(t *testing.T, d *desk, table *rowlock.Table) error {
		var total, id int
		lock, err := table.LoadLocked(t.Context(), rowlock.Edit{ID: 7, User: d.ada}, "total * 2, id", &total, &id)
		if err == nil && (total != 20 || id != 7 || lock.Serial < 1) {
			t.Errorf("loaded total %d, id %d, lock %+v", total, id, lock)
		}
		return err
	}, func(t *testing.T, d *desk) { d.adaHolds(t, "total = 10") }},
	{"SaveRelease", func(t *testing.T, d *desk, table *rowlock.Table) error {
		return table.SaveRelease(d.holder(t), edit(d.ada), saving(20))
	}, func(t *testing.T, d *desk) {
		d.holds(t, "total = 20 AND serial = 2 AND editedby IS NULL AND editedexpiry IS NULL AND editedsince <= "+d.time(1))
	}},
	{"SaveKeep", func(t *testing.T, d *desk, table *rowlock.Table) error {
		lock, err := table.SaveKeep(d.holder(t), edit(d.ada), saving(20))
		if err == nil && lock.Serial != 2 {
			t.Errorf("SaveKeep = %+v, want version 2", lock)
		}
		return err
	}, func(t *testing.T, d *desk) { d.adaHolds(t, "total = 20 AND serial = 2") }},
}

// adaHolds fails the test unless ada holds the lock for the default term.
func (d *desk) adaHolds(t *testing.T, also string) {
	t.Helper()
	d.holds(t, also+" AND editedby = "+d.user(d.ada)+" AND editedsince <= "+d.time(1)+
		" AND editedexpiry > "+d.time(300)+" AND editedexpiry < "+d.time(610)) // some of the term may have passed
}

// The methods that query a lock return what the corresponding operation would return.
func TestRowLockQuestions(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		for _, state := range rowLockStates {
			d.exec(t, "DELETE FROM invoice")
			d.exec(t, "INSERT INTO invoice (id, total) VALUES (7, 10)")
			state.set(t, d)
			before := d.row(t)
			err := d.do(t.Context(), func(table *rowlock.Table) error {
				mine, err2 := table.IsLockedBy(t.Context(), 7, d.ada)
				bobs, err3 := table.IsLockedBy(t.Context(), 7, d.bob)
				lockable, err4 := table.Lockable(t.Context(), 7, d.ada)
				lock, err := table.Current(t.Context(), 7)
				locked := lock.By != ""
				if locked != state.locked || mine != state.mine || bobs != (locked && !mine) {
					t.Errorf("%s: locked %v, ada's %v, bob's %v, %+v", state.name, locked, mine, bobs, lock)
				}
				if gone := state.request == sqlfence.ErrGone; lockable != (!gone && (!locked || mine)) {
					t.Errorf("%s: lockable %v", state.name, lockable)
				}
				return errors.Join(err, err2, err3, err4)
			})
			if state.request == sqlfence.ErrGone {
				harness.WantError(t, err, sqlfence.ErrGone)
			} else if err != nil {
				t.Errorf("%s: %v", state.name, err)
			}
			if after := d.row(t); after != before {
				t.Errorf("asking changed %s to %s", before, after)
			}
		}
	})
}

// A repeated request keeps the lock's Since; a new holder's lock has a new Since.
func TestRowLockSinceStays(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		first := d.mustRequest(t, edit(d.ada))
		near(t, "Since", first.Since, time.Now())
		near(t, "Expiry", first.Expiry, first.Since.Add(10*time.Minute))
		d.set(t, d.user(d.ada), d.time(1800))
		before, err := d.invoice.Current(t.Context(), 7)
		if err != nil {
			t.Fatal(err)
		}
		longer := edit(d.ada)
		longer.TTL = time.Hour
		again := d.mustRequest(t, longer)
		if !again.Since.Equal(before.Since) || !again.Expiry.After(before.Expiry) || again.Serial != 1 {
			t.Errorf("%+v became %+v", before, again)
		}
		near(t, "Expiry", again.Expiry, time.Now().Add(time.Hour))
		err = d.do(t.Context(), func(table *rowlock.Table) error {
			renewed, err := table.Renew(t.Context(), edit(d.ada))
			if err == nil && (!renewed.Since.Equal(before.Since) || !renewed.Expiry.Before(again.Expiry)) {
				t.Errorf("%+v became %+v: a term replaces the one before", again, renewed)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		// An expired lock gets a new Since, whoever takes or renews it.
		for what, take := range map[string]func(*rowlock.Table) (rowlock.Lock, error){
			"ada's renewal":  func(table *rowlock.Table) (rowlock.Lock, error) { return table.Renew(t.Context(), edit(d.ada)) },
			"ada's request":  func(table *rowlock.Table) (rowlock.Lock, error) { return table.Request(t.Context(), edit(d.ada)) },
			"bob's takeover": func(table *rowlock.Table) (rowlock.Lock, error) { return table.Request(t.Context(), edit(d.bob)) },
		} {
			d.set(t, d.user(d.ada), d.time(-1)) // started an hour ago, before first
			err := d.do(t.Context(), func(table *rowlock.Table) error {
				lock, err := take(table)
				if err == nil && lock.Since.Before(first.Since) {
					t.Errorf("%s of a lapsed lock: %+v, want it since now", what, lock)
				}
				return err
			})
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		d.set(t, d.user(d.bob), d.time(1800))
		_, err = d.request(t, edit(d.ada))
		d.wantLocked(t, err, d.bob)
	})
}

// Release frees the user's own lock once. It doesn't free another user's lock, and doesn't fail if the row has changed
// or is gone.
func TestRowLockRelease(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		release := func(user any) {
			t.Helper()
			if err := d.do(t.Context(), func(table *rowlock.Table) error { return table.Release(t.Context(), 7, user) }); err != nil {
				t.Errorf("release by %v: %v", user, err)
			}
		}
		unchanged := func(what string, by any) {
			t.Helper()
			before := d.row(t)
			release(by)
			if after := d.row(t); after != before {
				t.Errorf("%s changed %s to %s", what, before, after)
			}
		}
		d.mustRequest(t, edit(d.ada))
		unchanged("release by another", d.bob)
		d.exec(t, "UPDATE invoice SET serial = 2")
		release(d.ada)
		d.holds(t, "serial = 2 AND total = 10 AND editedby IS NULL AND editedexpiry IS NULL AND editedsince BETWEEN "+d.time(-1800)+" AND "+d.time(1))
		unchanged("second release", d.ada)
		d.mustRequest(t, rowlock.Edit{ID: 7, Serial: 2, User: d.bob})
		unchanged("release after another took it", d.ada)
		d.set(t, d.user(d.ada), d.time(-1))
		release(d.ada)
		d.holds(t, "editedby IS NULL")
		d.exec(t, "DELETE FROM invoice")
		release(d.ada)
	})
}

// WithNobody sets the value that is stored for no user if the column is NOT NULL.
func TestRowLockNobody(t *testing.T) {
	harness.EachStoreSetting(t, func(t *testing.T, s harness.Setting) {
		for _, nobody := range []any{0, ""} {
			d := &desk{Setting: s, ada: "ada", bob: "bob"}
			if nobody == 0 {
				d.ada, d.bob = 1, 2
			}
			d.open(t, rowlock.WithNobody(nobody))
			d.mustRequest(t, edit(d.ada))
			if err := d.invoice.Release(t.Context(), 7, d.ada); err != nil {
				t.Error(err)
			}
			d.holds(t, "editedby = "+d.nobody())
			d.mustRequest(t, edit(d.bob))
		}
	})
}

// A save's write and its change of the lock succeed or fail together.
func TestRowLockSaveIsWhole(t *testing.T) {
	stop := errors.New("stop")
	eachDesk(t, func(t *testing.T, d *desk) {
		d.mustRequest(t, edit(d.ada))
		before := d.row(t)
		failing := func(ctx context.Context, tx *sql.Tx) error {
			if err := saving(20)(ctx, tx); err != nil {
				return err
			}
			return stop
		}
		panicking := func(ctx context.Context, tx *sql.Tx) error {
			if err := saving(20)(ctx, tx); err != nil {
				return err
			}
			panic(stop)
		}
		for _, save := range []func(context.Context, *sql.Tx) error{failing, panicking} {
			for _, keep := range []bool{false, true} {
				err := func() (err error) {
					defer func() {
						if p := recover(); p != nil {
							err = p.(error)
						}
					}()
					return d.do(t.Context(), func(table *rowlock.Table) error {
						if keep {
							_, err := table.SaveKeep(d.holder(t), edit(d.ada), save)
							return err
						}
						return table.SaveRelease(d.holder(t), edit(d.ada), save)
					})
				}()
				if !errors.Is(err, stop) {
					t.Errorf("err = %v, want what save said", err)
				}
				if after := d.row(t); after != before {
					t.Errorf("a save that failed changed %s to %s", before, after)
				}
			}
		}
		// A second save of the same version is refused before its work is called.
		err := d.do(t.Context(), func(table *rowlock.Table) error {
			_, err := table.SaveKeep(d.holder(t), edit(d.ada), saving(20))
			return err
		})
		if err != nil {
			t.Error(err)
		}
		err = d.do(t.Context(), func(table *rowlock.Table) error {
			return table.SaveRelease(d.holder(t), edit(d.ada), func(context.Context, *sql.Tx) error {
				t.Error("save was called for an old version")
				return nil
			})
		})
		wantLockConflict(t, err, 1, 2)
	})
}

// In a column of either type, an ID as an integer and as a text is the same user.
func TestRowLockUsersInColumnsOfEitherType(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		for _, column := range []string{"text", "bigint"} {
			for _, names := range [][2]any{{7, "7"}, {"7", 7}} {
				t.Run(fmt.Sprintf("%T in %s", names[0], column), func(t *testing.T) {
					d := &desk{Setting: harness.Setting{Base: b}, ada: names[0], bob: "8", users: column}
					d.open(t)
					if _, err := d.invoice.Request(t.Context(), edit(d.ada)); err != nil {
						t.Fatal(err)
					}
					if lock, err := d.invoice.Renew(t.Context(), edit(names[1])); err != nil || lock.By != "7" {
						t.Errorf("renewed: %+v, %v", lock, err)
					}
					if _, err := d.invoice.Request(t.Context(), edit(d.bob)); !errors.Is(err, sqlfence.ErrLocked) {
						t.Errorf("bob: %v, want ErrLocked", err)
					}
					if _, err := d.invoice.SaveKeep(d.holder(t), edit(names[1]), saving(20)); err != nil {
						t.Error(err)
					}
					d.holds(t, "total = 20 AND serial = 2 AND editedby = '7'")
					if lock, err := d.invoice.Transfer(t.Context(), 7, names[0]); err != nil || lock.By != "7" {
						t.Errorf("transferred: %+v, %v", lock, err)
					}
					if err := d.invoice.Release(t.Context(), 7, names[1]); err != nil {
						t.Error(err)
					}
					d.holds(t, "editedby IS NULL")
				})
			}
		}
	})
}
