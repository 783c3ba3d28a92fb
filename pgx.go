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

// driverOptions is what leading arguments tell pgx about an execution.
type driverOptions struct {
	count    int           // how many arguments are options
	rewriter reflect.Value // the method RewriteQuery of one of them
	place    int           // which
	pure     bool          // it is pgx's own: it needs no connection, and comes to the same result each time
}

// driverOptions recognises the options that pgx takes before the arguments: an
// execution mode, a QueryRewriter and, for a query, result formats.
func (f *fence) driverOptions(args []driver.NamedValue, as form) (driverOptions, error) {
	var o driverOptions
	if f.profile.noOptions || len(f.tables) == 0 {
		return o, nil
	}
	for i, arg := range args {
		switch what, t := optionOf(arg.Value); {
		case what == rewriterOption && o.rewriter.IsValid():
			return o, &UnguardableError{Reason: "of two query rewriters it depends on pgx's version which are run; pass one"}
		case what == rewriterOption:
			o.rewriter, o.place = reflect.ValueOf(arg.Value).MethodByName("RewriteQuery"), i
			o.pure = ofPgx(t) && slices.Contains([]string{"NamedArgs", "StrictNamedArgs", "errorQueryRewriter"}, t.Name())
		case what == modeOption, what == formatOption && (as == queryForm || as == preparedQueryForm):
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

// optionOf tells what pgx takes a leading argument for, and its type.
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
	path := t.PkgPath()
	if _, vendored, ok := strings.Cut(path, "/vendor/"); ok {
		path = vendored
	}
	return strings.HasPrefix(path, "github.com/jackc/pgx/")
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

// rewriteQuery runs the rewriter among the arguments. What it makes of them is to
// be planned, and to be sent if it is guarded; what pgx's own makes is left to pgx
// otherwise. It returns the options that are left, why the statement can't be
// guarded, and the rewriter's own error.
func (a *attempt) rewriteQuery(ctx context.Context, base driver.Conn, o driverOptions) (left driverOptions, err, failed error) {
	connType := o.rewriter.Type().In(1)
	c, ok := connOf(base, connType)
	switch {
	case o.pure:
		c = reflect.Zero(connType)
	case !ok:
		return o, &UnguardableError{Reason: fmt.Sprintf("the query rewriter %T could write to any table, and the connection that it needs can't be had; pass arguments, or pgx.NamedArgs", a.own[o.place].Value)}, nil
	}
	given := make([]any, 0, len(a.own)-o.count)
	for _, arg := range a.own[o.count:] {
		given = append(given, arg.Value)
	}
	out := o.rewriter.Call([]reflect.Value{reflect.ValueOf(ctx), c, reflect.ValueOf(a.query), reflect.ValueOf(given)})
	if failed, _ := out[2].Interface().(error); failed != nil {
		return o, nil, fmt.Errorf("rewrite query failed: %w", failed) // as pgx says it
	}
	values := out[1].Interface().([]any)
	own := slices.Concat(a.own[:o.place], a.own[o.place+1:o.count])
	left = driverOptions{count: len(own)}
	for _, v := range values {
		own = append(own, driver.NamedValue{Value: v})
	}
	for i := range own {
		own[i].Ordinal = i + 1
	}
	a.text, a.own, a.rewritten = out[0].String(), own, true
	if !o.pure {
		a.sql, a.args, a.moved = a.text, own, true
	}
	if len(values) > 0 {
		if what, _ := optionOf(values[0]); what != noOption {
			err = &UnguardableError{Reason: "the first argument that the query rewriter gives would be taken for an option; give it as a plain value"}
		}
	}
	return left, err, nil
}

// connOf returns the connection of this type that a base connection is made of.
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
