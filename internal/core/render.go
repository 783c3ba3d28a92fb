package core

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/sqlfence/sqlfence/rewrite"
)

// buildSQL builds the guarded statement to send, or refuses a statement that can't be built.
func (e *Execution) buildSQL() (outcome, error) {
	given := e.read.Args[e.read.options:]
	e.read.keeps = e.mayKeep()
	e.with.values.Literal = e.needsLiteral(given)
	err := e.write()
	if err == nil && e.splitsAdded() {
		e.with.values.Literal = true
		err = e.write()
	}
	if err == nil && len(given) > 0 && e.misplaced() {
		err = e.registry.unguardable(nil, "", NeedsPlaces)
	}
	if err != nil {
		return refused, err
	}
	return guarded, nil
}

// mayKeep reports whether the adapter may cache the prepared statement, with the guard's values as arguments. It
// returns false for a statement that the application has prepared.
func (e *Execution) mayKeep() bool {
	return !e.Observes() && e.read.Stmt == nil && e.read.options == 0 &&
		e.conn.adapter.Keeps(e.read.Query, e.plan, e.rows)
}

// Keeps reports whether the adapter may cache the sent statement prepared, because other values of the guard don't
// change the SQL string.
func (e *Execution) Keeps() bool {
	if !e.read.keeps || e.with.values.Literal {
		return false
	}
	if len(e.sent.Added) > 0 {
		return slices.ContainsFunc(e.sent.Added, func(a rewrite.Arg) bool { return a.Again == 0 })
	}
	text, added, err := e.plan.Default()
	return err == nil && len(added) == 0 && text == e.sent.Query
}

// write builds the guarded SQL string and its arguments.
func (e *Execution) write() error {
	v := e.with.values
	// In the common case of one table and one token the values stay on the stack.
	var token [1]rewrite.Token
	var table [1]rewrite.TableValues
	if len(e.plan.Tables) == 1 && len(e.with.tokens.all) <= 1 && e.with.tokens.rows == nil {
		t := e.table(0)
		for i := range e.with.tokens.all {
			token[i] = t.value(e.with.tokens.all[i])
		}
		table[0] = t.values(token[:len(e.with.tokens.all)])
		if t.Rules.Sealed {
			table[0].Unsealed = e.unseals(t)
		}
		v.Tables = table[:]
	} else {
		v.Tables = e.with.tokens.values(e)
	}
	text, added, err := e.plan.Render(v)
	if err != nil {
		e.forgetKeys() // the keys may have changed before a retry
		return e.registry.unrendered(err)
	}
	e.sent = e.read.Request
	e.sent.Query = text
	if len(added) == 0 {
		return nil
	}
	e.sent.Args, e.sent.Added = e.merge(added, &v), added
	return nil
}

// values returns the values of all tables' guards.
func (e *Execution) values() rewrite.Values {
	v := e.with.values
	v.Tables = e.with.tokens.values(e)
	return v
}

// splitsAdded is [Execution.maySplit] for the guard's own arguments. If it returns true, the guard's values must be
// literals, which are ASCII in a session with such an encoding.
func (e *Execution) splitsAdded() bool {
	interpolates := e.request.Stmt == nil && e.conn.session.HasCharset()
	return interpolates && slices.ContainsFunc(e.sent.Added, func(a rewrite.Arg) bool {
		return a.Again == 0 && splits(e.sent.Args[e.read.options+a.Number-1])
	})
}

// learnKeys gives the plan the unique keys of the table that a REPLACE writes to.
func (e *Execution) learnKeys(ctx context.Context) error {
	keys, err := e.conn.session.UniqueKeys(ctx, (*queryable)(e.conn), *e.plan.Replaces())
	if err == nil {
		e.plan = e.plan.Knowing(keys)
	}
	return err
}

// forgetKeys removes from the cache the unique keys that learnKeys has read.
func (e *Execution) forgetKeys() {
	if replaced := e.plan.Replaces(); replaced != nil {
		e.conn.found.ForgetKeys(*replaced)
	}
}

// merge returns the statement's arguments, with the guard's added arguments in their places.
func (e *Execution) merge(added []rewrite.Arg, v *rewrite.Values) []driver.NamedValue {
	given := e.read.Args[e.read.options:]
	args := append(e.conn.argBuffer(len(e.read.Args)+len(added)), e.read.Args[:e.read.options]...)
	taken := 0
	for i, a := range added {
		before := a.Number - 1 - i // number of the statement's own arguments before a
		args = append(args, given[taken:before]...)
		taken = before
		value := a.Value(v)
		if a.Again > 0 {
			value = given[a.Again-1].Value
		}
		args = append(args, driver.NamedValue{Value: value})
	}
	args = append(args, given[taken:]...)
	for i := e.read.options; i < len(args); i++ {
		args[i].Ordinal = i + 1
	}
	return args
}

// needsLiteral reports whether the guard's values must be literals in the SQL string. If the application passes no
// arguments, an argument of the guard would cost most drivers a round trip.
func (e *Execution) needsLiteral(given []driver.NamedValue) bool {
	switch {
	case !e.plan.Params, len(given) != e.plan.Inputs, hasNamed(given):
		return true
	case len(given) > 0:
		return false
	case e.misplaced():
		return true
	case e.read.Stmt != nil, e.read.keeps:
		return false
	}
	return !e.rows || !e.conn.settings.profile.CachesQueries
}

func hasNamed(args []driver.NamedValue) bool {
	return slices.ContainsFunc(args, func(a driver.NamedValue) bool { return a.Name != "" })
}

// misplaced reports whether pgx, in its simple protocol, would write values into the SQL string where the server reads
// no placeholders.
func (e *Execution) misplaced() bool {
	return !e.conn.settings.profile.NoOptions && !e.plan.Inlines()
}

// NeedsPlaces is why a misplaced statement is refused on every pgx connection: its protocol is unknown here.
const NeedsPlaces = "in its simple protocol pgx would write the arguments where the server reads " +
	"no placeholders; " +
	"write names that contain $ in double quotes, and a blank before each string, and pass strings that contain " +
	"quotes, backslashes or $ as arguments"
