package orders_test

import (
	"fmt"
	"slices"
)

// A unit happens at one moment: a committed transaction, an action outside of transactions, or a refusal.
type unit struct {
	ops          []*op // successful, with their responses
	refused      *op   // refused after ops, which then have no effect
	began, ended int64 // the moment is between these times
}

// A transaction is a session's transaction in the history.
type transaction struct{ ops []*op }

// units returns the units of a history. With snapshots the statements of a transaction may see the state at its
// beginning.
func units(history []*op, snapshots bool) (all []unit) {
	open := make(map[int]*transaction)
	for _, o := range history {
		tx := open[o.session]
		switch {
		case o.action == "begin" || o.action == "plain":
			if o.outcome == done {
				open[o.session] = new(transaction)
			}
		case o.action == "commit" || o.action == "rollback":
			if o.action == "commit" && o.outcome == done && len(tx.ops) != 0 {
				all = append(all, unit{ops: tx.ops, began: o.began, ended: o.ended})
			}
			delete(open, o.session)
		case o.outcome.isConcurrency() || o.action == "snapshot":
		case tx == nil && o.outcome == done:
			all = append(all, unit{ops: []*op{o}, began: o.began, ended: o.ended})
		case tx == nil:
			all = append(all, unit{refused: o, began: o.began, ended: o.ended})
		case o.outcome == done:
			tx.ops = append(tx.ops, o)
		default:
			u := unit{ops: slices.Clone(tx.ops), refused: o, began: o.began, ended: o.ended}
			if snapshots {
				u.began = o.txBegan
			}
			all = append(all, u)
		}
	}
	return all
}

// explain looks for an order of the units that agrees with their times: in this order the model must give the
// database's responses and end with the rows that are left. It returns nil if such an order exists.
func explain(begin *state, all []unit, left string) error {
	deepest, why := -1, ""
	var extend func(s *state, rest []unit) bool
	extend = func(s *state, rest []unit) bool {
		if len(rest) == 0 {
			if shown := s.shown(); shown != left {
				if len(all) > deepest {
					deepest, why = len(all), fmt.Sprintf("the rows would be %q, and are %q", shown, left)
				}
				return false
			}
			return true
		}
		for i, u := range rest {
			if slices.ContainsFunc(rest, func(other unit) bool { return other.ended < u.began }) {
				continue
			}
			after, fault := u.after(s)
			if fault != "" {
				if n := len(all) - len(rest); n > deepest {
					deepest, why = n, fault
				}
				continue
			}
			if extend(after, slices.Delete(slices.Clone(rest), i, i+1)) {
				return true
			}
		}
		return false
	}
	if extend(begin, all) {
		return nil
	}
	return broken(why)
}

// broken says why no sequence explains the history.
type broken string

func (b broken) Error() string { return "no sequence explains it: " + string(b) }

// after returns the state after the unit, or the unit's fault in state s.
func (u unit) after(s *state) (after *state, fault string) {
	after = s.clone()
	for _, o := range u.ops {
		silent := s.silent && !after.reaches(o)
		answer, reasons := after.do(o)
		switch {
		case silent && slices.Equal(reasons, []outcome{stale}):
		case len(reasons) != 0 && u.refused == nil:
			return nil, fmt.Sprintf("landed, and is %v: %v", reasons, o)
		case answer != o.answer:
			return nil, fmt.Sprintf("want the answer %s: %v", answer, o)
		}
	}
	if u.refused == nil {
		return after, ""
	}
	_, reasons := after.do(u.refused)
	if !slices.Contains(reasons, u.refused.outcome) {
		return nil, fmt.Sprintf("refused, want one of %v: %v", reasons, u.refused)
	}
	if slices.Contains(reasons, stale) && u.refused.outcome != stale {
		return nil, fmt.Sprintf("refused, want stale first: %v", u.refused)
	}
	return s, ""
}

// causes returns an error for a response that reports concurrency, such as a deadlock, if no other session was active,
// or if the scenario excludes this response.
func (l *lab) causes(sc *scenario, history []*op) error {
	for _, o := range history {
		switch {
		case o.outcome == deadlock && l.ordered && !sc.circular:
			return fmt.Errorf("the sessions need not wait in a circle: %v", o)
		case o.outcome == unexpected:
			return fmt.Errorf("unexpected: %v", o)
		case !o.outcome.isConcurrency():
			continue
		case o.outcome == resealed && l.rules.has("Sealed"): // a session may know the seal from before, also from an earlier order
			continue
		}
		began := o.began
		if o.txBegan != 0 {
			began = o.txBegan
		}
		if !slices.ContainsFunc(history, func(other *op) bool {
			return other.session != o.session && other.during(began, o.ended, history)
		}) {
			return fmt.Errorf("%v, and no other session did anything: %v", o.outcome, o)
		}
	}
	return nil
}

// during reports whether the op, or its transaction, was running at some time of a period.
func (o *op) during(began, ended int64, history []*op) bool {
	until := o.ended
	if o.txBegan != 0 {
		for _, end := range history {
			if end.session == o.session && (end.action == "commit" || end.action == "rollback") && end.ended > until {
				until = end.ended
				break
			}
		}
	}
	return o.began < ended && until > began
}
