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
// prepared statement of the application's is kept by the application.
func (e *execution) mayKeep() bool {
	c, p := &e.state.cache, e.plan
	return c.size > 0 && !e.observes() && e.read.stmt == nil && e.read.options == 0 &&
		p.Alone && (c.rows || !p.Rows && !e.rows) && len(e.read.query) <= maxKeptText
}

// useKept has the execution use a kept statement, if it is one that can be kept. An error
// means that it couldn't be prepared.
func (e *execution) useKept(ctx context.Context) error {
	if !e.read.keeps || e.with.values.Literal || !e.isConstant() || sizeOf(e.sent.args) > maxKeptArgs {
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
// be the reason.
func (e *execution) unkeep(err error) {
	k, s := e.sent.kept, e.state
	e.release()
	if _, raised := e.classify(err); !raised && s.settings.profile.answered(err) && !dberr.IsConstraint(err) {
		s.cache.drop(k)
	}
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
