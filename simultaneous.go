package sqlfence

import "context"

// assignsTwice is why nothing is written by an UPDATE or an upsert of MariaDB's.
const assignsTwice = "the sql_mode SIMULTANEOUS_ASSIGNMENT, which is a part of ORACLE, allows no column twice in SET, " +
	"where the row is checked and marked; leave it out of the session's sql_mode"

// checkAssignments refuses an upsert where a column that is assigned twice would keep its first value, so
// that the row wouldn't get the statement's token, and an older one could write it later. A
// connection asks once, before the first guarded upsert, and again after a statement that may
// have changed the answer.
func (e *execution) checkAssignments(ctx context.Context) error {
	s := e.state
	query := s.settings.profile.text().FindSimultaneous()
	if query == "" || !e.plan.AssignsTwice || s.assignsInOrder {
		return nil
	}
	return e.askOnce(ctx, query, "the session's sql_mode", &s.assignsInOrder, func(string) string { return assignsTwice })
}
