package sqlfence

import (
	"context"
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// pgx takes options of an execution in front of its arguments, and among them a
// QueryRewriter, which makes another text and other arguments of those it is
// given. What is planned has to be what the server will read, so a rewriter is run
// before the statement is planned, in the way of pgx's Conn.Exec and Conn.Query.

// driverOptions are the leading arguments that pgx takes for options.
type driverOptions struct {
	count    int           // how many arguments are options
	rewriter reflect.Value // the method RewriteQuery of one of them
	place    int           // which
	pure     bool          // it is pgx's own: it needs no connection, and comes to the same result each time
}

// readOptions finds the driver's options among the arguments, and runs the query
// rewriter if there is one: it sets what is read and its plan. reason is why the
// statement can't be guarded; failed is the rewriter's own error.
func (e *execution) readOptions(ctx context.Context) (reason, failed error) {
	if s := e.state.settings; s.profile.noOptions || len(s.tables) == 0 {
		return nil, nil
	}
	opts, err := findOptions(e.asked.args, e.rows)
	e.options = opts.count
	if err != nil || !opts.rewriter.IsValid() {
		return err, nil
	}
	if reason, failed = e.rewriteQuery(ctx, opts); failed == nil {
		e.plan = e.rewriter().Plan(e.read.query)
	}
	return reason, failed
}

// findOptions recognises the options that pgx takes before the arguments: an
// execution mode, a QueryRewriter and, for a query, result formats.
func findOptions(args []driver.NamedValue, rows bool) (driverOptions, error) {
	var o driverOptions
	for i, arg := range args {
		switch what, t := optionOf(arg.Value); {
		case what == rewriterOption && o.rewriter.IsValid():
			return o, unguardable("", "which of two query rewriters pgx runs depends on its version; pass one")
		case what == rewriterOption:
			o.rewriter, o.place = reflect.ValueOf(arg.Value).MethodByName("RewriteQuery"), i
			o.pure = ofPgx(t) && slices.Contains([]string{"NamedArgs", "StrictNamedArgs", "errorQueryRewriter"}, t.Name())
		case what == modeOption, what == formatOption && rows:
		default:
			return o, nil
		}
		o.count++
	}
	return o, nil
}

// An option is what pgx takes an argument for.
type option uint8

const (
	noOption option = iota
	modeOption
	formatOption
	rewriterOption
)

// optionOf returns what pgx takes a leading argument for, and its type.
func optionOf(v any) (option, reflect.Type) {
	switch v.(type) {
	case nil, int64, float64, bool, []byte, string, time.Time, int, int32:
		return noOption, nil
	}
	t := reflect.TypeOf(v)
	switch m, ok := t.MethodByName("RewriteQuery"); {
	case ok && isRewriter(m.Type):
		return rewriterOption, t
	case !ofPgx(t):
	case t.Name() == "QueryExecMode":
		return modeOption, t
	case t.Name() == "QueryResultFormats", t.Name() == "QueryResultFormatsByOID":
		return formatOption, t
	}
	return noOption, t
}

func ofPgx(t reflect.Type) bool {
	return strings.HasPrefix(packageOf(t), "github.com/jackc/pgx/")
}

var (
	contextType = reflect.TypeFor[context.Context]()
	stringType  = reflect.TypeFor[string]()
	argsType    = reflect.TypeFor[[]any]()
	errorType   = reflect.TypeFor[error]()
)

// isRewriter reports whether a method, its receiver first, is that of a
// QueryRewriter: func(context.Context, *pgx.Conn, string, []any) (string, []any, error).
func isRewriter(m reflect.Type) bool {
	return m.NumIn() == 5 && !m.IsVariadic() && m.In(1) == contextType && m.In(2).Kind() == reflect.Pointer &&
		m.In(3) == stringType && m.In(4) == argsType &&
		m.NumOut() == 3 && m.Out(0) == stringType && m.Out(1) == argsType && m.Out(2) == errorType
}

// rewriteQuery runs the rewriter among the arguments. What it makes of them is read,
// and is sent if it is guarded, by the connection; what pgx's own makes is left to
// pgx otherwise.
func (e *execution) rewriteQuery(ctx context.Context, o driverOptions) (reason, failed error) {
	asked := e.asked.args
	connType := o.rewriter.Type().In(1)
	c, ok := connOf(e.state.base, connType)
	switch {
	case o.pure:
		c = reflect.Zero(connType)
	case !ok:
		return unguardable("", fmt.Sprintf("the query rewriter %T, which could write to any table, needs a connection that isn't accessible; "+
			"pass arguments, or pgx.NamedArgs", asked[o.place].Value)), nil
	}
	given := make([]any, 0, len(asked)-o.count)
	for _, arg := range asked[o.count:] {
		given = append(given, arg.Value)
	}
	out := o.rewriter.Call([]reflect.Value{reflect.ValueOf(ctx), c, reflect.ValueOf(e.asked.query), reflect.ValueOf(given)})
	if failed, _ := out[2].Interface().(error); failed != nil {
		return nil, fmt.Errorf("rewrite query failed: %w", failed) // as pgx says it
	}
	values := out[1].Interface().([]any)
	args := slices.Concat(asked[:o.place], asked[o.place+1:o.count])
	e.options = len(args)
	for _, v := range values {
		args = append(args, driver.NamedValue{Value: v})
	}
	for i := range args {
		args[i].Ordinal = i + 1
	}
	e.read = request{query: out[0].String(), args: args}
	if !o.pure {
		e.sent = e.read
	}
	if len(values) > 0 {
		if what, _ := optionOf(values[0]); what != noOption {
			reason = unguardable("", "pgx would take the first argument that the query rewriter returns for an option; return a plain value")
		}
	}
	return reason, nil
}

// connOf returns the connection of this type that a base connection wraps.
func connOf(base driver.Conn, connType reflect.Type) (reflect.Value, bool) {
	for range 8 {
		m := reflect.ValueOf(base).MethodByName("Conn")
		if m.IsValid() && m.Type().NumIn() == 0 && m.Type().NumOut() == 1 && m.Type().Out(0) == connType {
			return m.Call(nil)[0], true
		}
		wrapper, ok := base.(interface{ Raw() driver.Conn }) // as otelsql's
		if !ok {
			break
		}
		base = wrapper.Raw()
	}
	return reflect.Value{}, false
}
