package sqlfence

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/rewrite"
)

// Which guarded executions use a statement that their connection keeps, and what becomes
// of it.

// mayKeep reports whether the statement can be kept with the guard's values as arguments. A
// prepared statement of the application's is kept by the application; without arguments a
// remote database executes a text in one round trip, too.
func (e *execution) mayKeep(given []driver.NamedValue) bool {
	c, p, db := &e.state.cache, e.plan, e.state.settings.profile.database
	return c.size > 0 && !e.observes() && e.read.stmt == nil && e.options == 0 &&
		p.Alone && (c.rows || !p.Rows && !e.rows) && len(e.read.query) <= maxKeptText &&
		(len(given) > 0 || !db.remote()) && !db.readsOnce(e.read.query)
}

// useKept has the execution use a kept statement, if it is one that can be kept. An error
// means that it couldn't be prepared.
func (e *execution) useKept(ctx context.Context) error {
	if !e.keeps || e.values.Literal || !e.isConstant() || sizeOf(e.sent.args) > maxKeptArgs {
		return nil
	}
	k, err := e.state.cache.take(ctx, e.sent.query)
	e.sent.kept = k
	return err
}

// isConstant reports whether the text to be sent is the same for other values of the guard's.
func (e *execution) isConstant() bool {
	if len(e.sent.added) > 0 {
		return slices.ContainsFunc(e.sent.added, func(a rewrite.Arg) bool { return a.Again == 0 })
	}
	form, err := e.plan.Default()
	return err == nil && len(form.Args) == 0 && form.SQL == e.sent.query
}

// sizeOf returns how many bytes the arguments hold that can be long.
func sizeOf(args []driver.NamedValue) (n int) {
	for i := range args {
		switch v := args[i].Value.(type) {
		case string:
			n += len(v)
		case []byte:
			n += len(v)
		}
	}
	return n
}

// unkeep ends the use of a kept statement that failed with err, and drops it if it could
// be the reason. It reports whether the execution is to be sent once more without it: the
// database has executed nothing because what it had prepared doesn't hold any more.
func (e *execution) unkeep(err error) (again bool) {
	k, s := e.sent.kept, e.state
	e.sent.kept = nil
	s.cache.release(k)
	db := s.settings.profile.database
	if _, raised := e.classify(err); raised || !db.answered(err) || dberr.IsConstraint(err) {
		return false
	}
	s.cache.drop(k)
	if s.inTx || !db.outdated(err) {
		return false
	}
	s.cache.closeDropped() // pgx would use it for the same text
	return true
}

// release ends the use of a kept statement.
func (e *execution) release() {
	if e.sent.kept != nil {
		e.state.cache.release(e.sent.kept)
		e.sent.kept = nil
	}
}

// executed ends the use of a kept statement that was executed: the driver is done with the
// arguments.
func (e *execution) executed() {
	if c := &e.state.cache; e.sent.kept != nil && c.direct && len(e.sent.args) > len(e.read.args) {
		clear(e.sent.args)
		c.args = e.sent.args[:0]
	}
	e.release()
}
