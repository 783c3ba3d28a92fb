package hold_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// A holding is a function by which a transaction checks its tokens.
type holding func(t *testing.T, p *place, tx *sql.Tx, held []sqlfence.Token) error

func hold(t *testing.T, p *place, tx *sql.Tx, held []sqlfence.Token) error {
	return p.store.Hold(t.Context(), tx, held...)
}

// look is the control of the tests: it compares the token and takes no lock.
func look(t *testing.T, _ *place, tx *sql.Tx, held []sqlfence.Token) error {
	for _, token := range held {
		var current int64
		err := tx.QueryRowContext(t.Context(), "SELECT token FROM fencing_tokens WHERE name = '"+token.Name+"'").Scan(&current)
		if err != nil || current != token.Value {
			return errors.Join(err, sqlfence.ErrStale)
		}
	}
	return nil
}

// steps are the holder's steps. The other session issues a token for the last name before one of them, or after the
// last.
var steps = []string{"begin", "read", "hold", "write", "commit"}

// run executes the holder's steps with the issue before the step number at. It returns whether the transaction
// committed although the token had been issued.
func run(t *testing.T, p *place, level sql.IsolationLevel, at int, names []string, check holding) (late bool) {
	t.Helper()
	ctx := t.Context()
	held := p.issue(t, names...)
	other := harness.NewStore(t, p.plain)
	var tx *sql.Tx
	var issued *harness.Task
	ended := func() bool {
		select {
		case <-issued.Ended():
			return issued.Wait() == nil
		default:
			return false
		}
	}
	for i, step := range append(slices.Clone(steps), "end") {
		if i == at {
			issued = harness.Go(func() error {
				_, err := other.Issue(ctx, names[len(names)-1])
				return err
			})
			harness.Eventually(t, "the issue returns or waits", func() bool {
				select {
				case <-issued.Ended():
					return true
				default:
					return p.Networked() && p.waiting(t)
				}
			})
		}
		late = at < len(steps) && issued != nil && ended()
		var err error
		switch step {
		case "begin":
			tx = harness.Begin(ctx, t, p.db, level)
		case "read":
			err = tx.QueryRowContext(ctx, "SELECT n FROM things WHERE id = 1").Scan(new(int))
		case "hold":
			err = check(t, p, tx, held)
		case "write":
			err = write(ctx, tx)
		case "commit":
			err = tx.Commit()
		}
		if err != nil {
			if !errors.Is(err, sqlfence.ErrStale) && !retryable(err) {
				t.Errorf("%s: %v", step, err)
			}
			_ = tx.Rollback()
			late = false
			break
		}
		if step == "commit" {
			break
		}
	}
	if issued == nil {
		return false
	}
	if err := issued.Wait(); err != nil && (p.Networked() || !retryable(err)) {
		t.Errorf("issue: %v", err)
	}
	return late
}

func TestG13NoOrderOfStepsCommitsUnderAnOlderToken(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		for n, names := range [][]string{{"a"}, tenNames()} {
			for _, level := range p.levels() {
				caught := 0
				for at := range len(steps) + 1 {
					if run(t, p, level, at, names, hold) {
						t.Errorf("%d names at %v: a token that was issued before %q didn't stop the commit", len(names), level,
							strings.Join(steps[at:], ", "))
					}
					if n == 0 && run(t, p, level, at, names, look) {
						caught++
					}
				}
				// SQLite refuses the commit of a transaction that read before the issue.
				if n == 0 && caught == 0 && p.Networked() && level < sql.LevelSerializable {
					t.Errorf("at %v the control without a lock passes as well", level)
				}
			}
		}
	})
}

func tenNames() (names []string) {
	for i := range 10 {
		names = append(names, fmt.Sprint("name ", 9-i))
	}
	return names
}

// Holders and an issuer use ten names each, in different orders.
func TestHoldersOfManyNamesDoNotDeadlock(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		rounds := 30
		if testing.Short() {
			rounds = 8
		}
		names := tenNames()
		var tasks []*harness.Task
		for g := range 4 {
			db := p.Raw(t, p.dsn)
			store := harness.NewStore(t, db)
			tasks = append(tasks, harness.Go(func() error {
				for i := range rounds {
					mine := slices.Clone(names)
					if (g+i)%2 == 0 {
						slices.Reverse(mine)
					}
					if g == 0 {
						if _, err := store.IssueMany(t.Context(), mine...); err != nil {
							return err
						}
						continue
					}
					if err := held(t, db, store, mine); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		for _, task := range tasks {
			if err := task.Wait(); err != nil {
				t.Error(err)
			}
		}
	})
}

func held(t *testing.T, db *sql.DB, store *tokens.Store, names []string) error {
	var now []sqlfence.Token
	for _, name := range names {
		token, err := store.Current(t.Context(), name)
		if errors.Is(err, sqlfence.ErrUnknownName) || err == nil && token.Value == 0 {
			return nil // not issued yet
		}
		if err != nil {
			return err
		}
		now = append(now, token)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := store.Hold(t.Context(), tx, now...); err != nil {
		if errors.Is(err, sqlfence.ErrStale) || strings.Contains(err.Error(), "locked") {
			return nil
		}
		return err
	}
	return tx.Commit()
}
