package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// repeat repeats an operation after a serialization failure, as an application does at the higher isolation levels.
func (d *desk) repeat(ctx context.Context, operation func(*rowlock.Table) error) error {
	if !d.inTx {
		return operation(d.invoice)
	}
	opts := sqlfence.RetryOptions{Tx: &sql.TxOptions{Isolation: d.Level}, Attempts: 100}
	return sqlfence.Retry(ctx, d.db, opts, func(ctx context.Context, tx *sql.Tx) error {
		return operation(d.invoice.In(tx))
	})
}

// If many users ask for the lock at once, one user gets it, and the other users get the holder's name.
func TestRowLockOneHolder(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		users := make([]any, 12)
		for i := range users {
			users[i] = any(i + 1)
			if _, ok := d.ada.(string); ok {
				users[i] = fmt.Sprintf("user %d", i+1)
			}
		}
		for range 5 {
			var holders, refused atomic.Int32
			var wg sync.WaitGroup
			start := make(chan struct{})
			for _, user := range users {
				wg.Go(func() {
					<-start
					err := d.repeat(t.Context(), func(table *rowlock.Table) error {
						_, err := table.Request(t.Context(), edit(user))
						return err
					})
					var locked *sqlfence.LockedError
					switch {
					case err == nil:
						holders.Add(1)
					case errors.As(err, &locked) && locked.By != fmt.Sprint(user) && locked.By != "":
						refused.Add(1)
					default:
						t.Errorf("%v: %v", user, err)
					}
				})
			}
			close(start)
			wg.Wait()
			if holders.Load() != 1 || int(refused.Load()) != len(users)-1 {
				t.Errorf("%d of %d hold the lock, %d were refused", holders.Load(), len(users), refused.Load())
			}
			d.exec(t, "UPDATE invoice SET editedby = NULL, editedexpiry = NULL")
		}
	})
}

// Users edit a row in turn, each by the rules. No save is lost, even if every lock expires at once and protects nobody.
func TestRowLockNoLostUpdate(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		const editors, saves = 6, 5
		var wg sync.WaitGroup
		for i := range editors {
			user := any(i + 1)
			if _, ok := d.ada.(string); ok {
				user = fmt.Sprintf("user %d", i+1)
			}
			wg.Go(func() {
				for done := 0; done < saves; {
					// If i is odd, the lock lapses while the user edits.
					e := rowlock.Edit{ID: 7, User: user}
					if i%2 == 1 {
						e.TTL = 1e6
					}
					var total int
					err := d.repeat(t.Context(), func(table *rowlock.Table) error {
						lock, err := table.LoadLocked(t.Context(), e, "total", &total)
						e.Serial = lock.Serial
						return err
					})
					if err == nil {
						err = d.repeat(t.Context(), func(table *rowlock.Table) error {
							err := table.SaveRelease(d.holder(t), e, saving(total+1))
							if errors.Is(err, sqlfence.ErrConflict) {
								return fmt.Errorf("%w: %v", sqlfence.ErrLocked, err) // repeat must not use the old total
							}
							return err
						})
					}
					switch {
					case err == nil:
						done++
					case !errors.Is(err, sqlfence.ErrLocked) && !errors.Is(err, sqlfence.ErrConflict) && !(harness.RefusedByIsolation(err) && !d.inTx):
						t.Errorf("%v: %v", user, err)
						return
					default:
						time.Sleep(time.Millisecond) // without a pause the requests leave the holder no time
					}
				}
			})
		}
		wg.Wait()
		d.holds(t, fmt.Sprintf("total = %d AND serial = %d", 10+editors*saves, 1+editors*saves))
	})
}

// A request that waits decides by the row that is committed when the wait ends, and reports this row. In PostgreSQL
// this takes one statement.
func TestRowLockDecidesOnTheNewest(t *testing.T) {
	changes := []struct {
		name, change string // %s: another user
		want         error
	}{
		{"taken by another", "UPDATE invoice SET editedby = %s, editedsince = now(), editedexpiry = now() + interval '1 hour'", sqlfence.ErrLocked},
		{"released", "UPDATE invoice SET editedby = NULL, editedexpiry = NULL", nil},
		{"changed", "UPDATE invoice SET serial = 2", sqlfence.ErrConflict},
		{"deleted", "DELETE FROM invoice", sqlfence.ErrGone},
		{"not touched", "SELECT id FROM invoice FOR UPDATE", nil},
	}
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		for _, change := range changes {
			for _, before := range []string{"NULL", "'bob'"} {
				t.Run(change.name+" from "+before, func(t *testing.T) {
					d := &desk{Setting: s, ada: "ada", bob: "bob"}
					d.open(t)
					d.set(t, before, d.time(1800))
					calls := new(harness.Counter)
					counted, err := sqlfence.OpenDB(s.Counting(t, d.source, calls), sqlfence.WithDialect(s.Dialect))
					d.db = harness.CloseAtEnd(t, counted, err)
					table := d.table(t)

					tx := harness.Begin(context.Background(), t, d.plain, sql.LevelDefault)
					query := change.change
					if strings.Contains(query, "%s") {
						query = fmt.Sprintf(query, "'carol'")
					}
					if _, err := tx.Exec(query); err != nil {
						t.Fatal(err)
					}
					var lock rowlock.Lock
					asked := (&harness.Shop{Setting: s, Plain: d.plain}).Behind(t, tx, func() (err error) {
						lock, err = table.Request(t.Context(), edit("ada"))
						return err
					})
					want := change.want
					if change.name == "not touched" && before != "NULL" {
						want = sqlfence.ErrLocked
					}
					if !errors.Is(asked, want) || want == nil && (asked != nil || lock.By != "ada") {
						t.Errorf("Request = %+v, %v; want %v", lock, asked, want)
					}
					switch want {
					case sqlfence.ErrConflict:
						wantLockConflict(t, asked, 1, 2)
					case sqlfence.ErrLocked:
						by := "carol"
						if change.name == "not touched" {
							by = "bob"
						}
						d.wantLocked(t, asked, by)
					}
					if n := len(calls.Texts()); n != 1 && s.Level == sql.LevelReadCommitted {
						t.Errorf("%d statements, want 1: %q", n, calls.Texts())
					}
				})
			}
		}
	})
}

// The methods' round trips, if they are granted and if they are refused.
func TestRowLockRoundTrips(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.Returns() {
			t.Skip("where an UPDATE returns no rows a call is a transaction")
		}
		d := &desk{Setting: harness.Setting{Base: b, Level: sql.LevelDefault}, ada: "ada", bob: "bob"}
		d.open(t)
		calls := new(harness.Counter)
		counted, err := sqlfence.OpenDB(b.Counting(t, d.source, calls), sqlfence.WithDialect(b.Dialect), sqlfence.WithTable("invoice"))
		d.db = harness.CloseAtEnd(t, counted, err)
		table := d.table(t)
		cost := func(what string, want int, operation func() error) {
			t.Helper()
			calls.Reset()
			err := operation()
			if refused := errors.Is(err, sqlfence.ErrLocked); err != nil && !refused {
				t.Errorf("%s: %v", what, err)
			} else if refused && b.Dialect == sqlfence.SQLite {
				want++ // the second statement finds the reason
			}
			if kinds := slices.DeleteFunc(calls.Calls(), func(c harness.Call) bool { return c.Kind == "prepare" }); len(kinds) != want {
				t.Errorf("%s: %d calls, want %d: %v", what, len(kinds), want, kinds)
			}
		}
		var total int
		for _, user := range []string{"ada", "bob"} {
			cost("Request", 1, func() error { _, err := table.Request(t.Context(), edit(user)); return err })
			cost("Renew", 1, func() error { _, err := table.Renew(t.Context(), edit(user)); return err })
			cost("LoadLocked", 1, func() error {
				_, err := table.LoadLocked(t.Context(), edit(user), "total", &total)
				return err
			})
			cost("IsLockedBy", 1, func() error { _, err := table.IsLockedBy(t.Context(), 7, user); return err })
		}
		cost("Release", 1, func() error { return table.Release(t.Context(), 7, "ada") })
		cost("Transfer", 1, func() error { _, err := table.Transfer(t.Context(), 7, "bob"); return err })
	})
}
