package orders_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A control is an alternative guard that breaks its rule's promise.
type control struct {
	name     string
	rules    ruleset
	sessions []string
	own      map[string]action
	safe     []string // databases on which the guard isn't broken: no order may violate the promise
}

// A refusedCheck is the refusal by a control's check.
type refusedCheck outcome

func (r refusedCheck) Error() string { return "the check says: " + string(r) }

// controls: the guard left out, guards that compare and write at different moments, and guards that skip rows.
var controls = slices.Concat([]control{
	{name: "the guard is left out", rules: with("Ledger"), sessions: []string{"begin update commit", "take update"},
		own: map[string]action{"update": put("")}},
	{name: "a subquery without a lock", rules: with("Ledger"), sessions: []string{"begin update commit", "take update"},
		own:  map[string]action{"update": filtered("(SELECT token FROM fencing_tokens WHERE name = 'books') <= %d")},
		safe: []string{"SQLite"}},
	{name: "a state without the attempt", rules: with("Claim"), sessions: []string{"begin update commit", "take update"},
		own: map[string]action{"update": put("")}},
	{name: "a held transaction without a lock", rules: with("Ledger"), sessions: []string{"begin hold note commit", "take"},
		own:  map[string]action{"hold": check("SELECT token FROM fencing_tokens WHERE name = 'books'", isOlder)},
		safe: []string{"SQLite"}},
	{name: "a filter in the WHERE", rules: with("RowFence"), sessions: []string{"several", "take other"},
		own: map[string]action{"several": filtered("fence_token <= %d"), "other": filtered("fence_token <= %d")}},
}, checkThenWrite())

// checkThenWrite returns controls that check and write by two statements, in a transaction and outside of one.
func checkThenWrite() (all []control) {
	for _, c := range []struct {
		rule, question, sets string
		refused              func(s *session, found string) outcome
	}{
		{"Ledger", "SELECT token FROM fencing_tokens WHERE name = 'books'", "", isOlder},
		{"RowFence", "SELECT fence_token FROM books WHERE id = 1", ", fence_token = %d", isOlder},
		{"Serial", "SELECT serial FROM books WHERE id = 1", ", serial = serial + 1", isChanged},
		{"EditLock", "SELECT COALESCE(editedby, '') FROM books WHERE id = 1", "", isLocked},
		{"Claim", "SELECT attempt FROM books WHERE id = 1", "", isTaken},
		{"ClaimOf", "SELECT attempt FROM jobs WHERE id = 1", "", isTaken},
	} {
		of := control{name: "check then write", rules: with(c.rule), sessions: []string{"check put", "take check put"},
			own: map[string]action{"put": put(c.sets), "check": check(c.question, c.refused)}}
		all = append(all, of)
		of.name, of.sessions = "check then write in a transaction", []string{"begin check put commit", "take check put"}
		if c.rule != "Serial" { // under Serial a session without a snapshot loses the update
			of.safe = []string{"SQLite"} // a write after an old snapshot fails
		}
		all = append(all, of)
	}
	return all
}

func isOlder(s *session, found string) outcome {
	if len(found) > len(fmt.Sprint(s.token)) || len(found) == len(fmt.Sprint(s.token)) && found > fmt.Sprint(s.token) {
		return stale
	}
	return done
}

func isChanged(s *session, found string) outcome {
	if found != fmt.Sprint(s.serial) {
		return conflict
	}
	return done
}

func isLocked(s *session, found string) outcome {
	if found != "" && found != s.editor {
		return locked
	}
	return done
}

func isTaken(s *session, found string) outcome {
	if found != fmt.Sprint(s.claims[1]) {
		return stale
	}
	return done
}

// check runs a query. If the result means a refusal, the session's remaining steps are skipped.
func check(question string, refused func(*session, string) outcome) action {
	return func(ctx context.Context, s *session, o *op) (err error) {
		if _, o.tokens, err = s.presented(ctx, writes[o.action]); err != nil {
			return err
		}
		o.serial = s.serial
		var found string
		if err := s.runner().QueryRowContext(ctx, question).Scan(&found); err != nil {
			return err
		}
		if why := refused(s, found); why != done {
			s.ready = false
			return refusedCheck(why)
		}
		return nil
	}
}

// put returns the action that writes without a guard.
func put(sets string) action {
	return func(ctx context.Context, s *session, o *op) (err error) {
		if _, o.tokens, err = s.presented(ctx, writes[o.action]); err != nil {
			return err
		}
		o.serial = s.serial
		also := strings.Replace(sets, "%d", fmt.Sprint(s.token), 1)
		_, err = s.runner().ExecContext(ctx, s.text("UPDATE books SET tag = ?"+also+" WHERE id = 1"), o.tag)
		return err
	}
}

// filtered returns the action that writes the rows that satisfy a condition. If there is none, this counts as a
// refusal.
func filtered(condition string) action {
	return func(ctx context.Context, s *session, o *op) (err error) {
		if _, o.tokens, err = s.presented(ctx, writes[o.action]); err != nil {
			return err
		}
		sets := ""
		if s.rules.has("RowFence") {
			sets = fmt.Sprintf(", fence_token = %d", s.token)
		}
		where := map[string]string{"update": "id = 1", "other": "id = 2", "several": "id < 3"}[o.action]
		query := "UPDATE books SET tag = ?" + sets + " WHERE " + where + " AND " + fmt.Sprintf(condition, s.token)
		result, err := s.runner().ExecContext(ctx, s.text(query), o.tag)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(refusedCheck(stale), err)
		}
		return nil
	}
}

// On each database the machine catches each of its controls in at least one order. All modes of a database count
// together, and the page has all databases.
func TestControlsAreCaught(t *testing.T) {
	var tried harness.Subtests
	caught := make(map[string]map[string][]int) // by database and mode, of each control
	for _, d := range databases {
		caught[d.name] = make(map[string][]int)
		tried.Run(t, d.name, func(t *testing.T) {
			modes := d.modes
			if testing.Short() {
				modes = modes[:1]
			}
			sum := make([]int, len(controls))
			var triedModes harness.Subtests
			for _, m := range modes {
				triedModes.Run(t, m.name, func(t *testing.T) {
					p := d.newPlace(t, m)
					w := d.newWatch(t, p)
					for i, c := range controls {
						n := c.run(t, p, w)
						caught[d.name][m.name] = append(caught[d.name][m.name], n)
						sum[i] += n
					}
				})
			}
			triedModes.NeedAll(t)
			for i, c := range controls {
				if safe := slices.Contains(c.safe, d.name); (sum[i] == 0) != safe {
					t.Errorf("%v, %s: caught in %d orders", c.rules, c.name, sum[i])
				}
			}
		})
	}
	tried.NeedAll(t)
	if !t.Failed() && !testing.Short() {
		record(t, "controls", controlTable(caught))
	}
}

// run runs the control in every order, and returns the number of orders in which it was caught.
func (c control) run(t *testing.T, p *place, w *watch) (caught int) {
	l := p.newLab(t, c.rules, 2, nil)
	l.own = c.own
	sc := newScenario(cast{name: c.name, sessions: c.sessions}, c.rules, "", "")
	orders := sc.orders()
	for _, order := range orders {
		m, err := l.judge(t.Context(), w, job{sc, order})
		var why broken
		if errors.As(err, &why) {
			caught++
		} else if err != nil {
			t.Errorf("%v, order %v: %v\n%s", sc, order, err, describe(m))
		}
	}
	t.Logf("%v: caught in %d of %d orders", sc, caught, len(orders))
	return caught
}
