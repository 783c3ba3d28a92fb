package basedriver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// pgx takes options of an execution before the arguments. An option may be a QueryRewriter, which changes the SQL and
// the arguments. The plan must match the SQL that the server reads, so the rewriter runs before the statement is
// planned, as in pgx's Conn.Exec and Conn.Query.

// Options are the leading arguments that pgx takes for options.
type Options struct {
	Count int // how many arguments are options

	rewriter reflect.Value // the method RewriteQuery of the option at place
	place    int           // which
	pure     bool          // the rewriter is pgx's: it needs no connection, and always returns the same result
}

// FindOptions recognises the options that pgx takes before the arguments: an execution mode, a QueryRewriter and, for a
// query, result formats. refused is why the statement is refused, if it's unclear which arguments pgx takes for
// options; else empty.
func FindOptions(args []driver.NamedValue, rows bool) (o Options, refused string) {
	for i, arg := range args {
		switch what, t := optionOf(arg.Value); {
		case what == rewriterOption && o.Rewrites():
			return o, "which of two query rewriters pgx runs depends on its version; pass one"
		case what == rewriterOption:
			o.rewriter, o.place = reflect.ValueOf(arg.Value).MethodByName("RewriteQuery"), i
			o.pure = ofPgx(t) &&
				slices.Contains([]string{"NamedArgs", "StrictNamedArgs", "errorQueryRewriter"}, t.Name())
		case what == modeOption, what == formatOption && rows:
		default:
			return o, ""
		}
		o.Count++
	}
	return o, ""
}

// Rewrites reports whether there is a QueryRewriter among the options.
func (o *Options) Rewrites() bool { return o.rewriter.IsValid() }

// A Rewritten is the statement that a QueryRewriter returns.
type Rewritten struct {
	Query   string
	Args    []driver.NamedValue
	Options int // how many of the arguments are options

	// Pure: the rewriter is pgx's, and always returns the same result.
	Pure bool
}

// Rewrite runs the rewriter among the options on the connection base, which is pgx's or a driver's, with the
// application's statement. refused is the reason if the statement can't be guarded; err is the rewriter's error.
func (o *Options) Rewrite(
	ctx context.Context, base any, query string, args []driver.NamedValue,
) (to Rewritten, refused string, err error) {
	to = Rewritten{Query: query, Args: args, Options: o.Count}
	connType := o.rewriter.Type().In(1)
	isConn := func(t reflect.Type) bool { return t == connType }
	c, ok := reflect.ValueOf(base), isConn(reflect.TypeOf(base))
	if !ok {
		c, ok = connOf(base, isConn)
	}
	switch {
	case o.pure:
		c = reflect.Zero(connType)
	case !ok:
		return to, fmt.Sprintf("the query rewriter %T, which could write to any table, needs a connection that isn't "+
			"accessible; "+
			"pass arguments, or pgx.NamedArgs", args[o.place].Value), nil
	}
	given := make([]any, 0, len(args)-o.Count)
	for _, arg := range args[o.Count:] {
		given = append(given, arg.Value)
	}
	out := o.rewriter.Call([]reflect.Value{reflect.ValueOf(ctx), c, reflect.ValueOf(query), reflect.ValueOf(given)})
	if err, _ := out[2].Interface().(error); err != nil {
		return to, "", fmt.Errorf("rewrite query failed: %w", err) // as pgx says it
	}
	values := out[1].Interface().([]any)
	to = Rewritten{Query: out[0].String(), Args: slices.Concat(args[:o.place], args[o.place+1:o.Count]), Pure: o.pure}
	to.Options = len(to.Args)
	for _, v := range values {
		to.Args = append(to.Args, driver.NamedValue{Value: v})
	}
	for i := range to.Args {
		to.Args[i].Ordinal = i + 1
	}
	if len(values) > 0 {
		if what, _ := optionOf(values[0]); what != noOption {
			refused = "pgx would take the first argument that the query rewriter returns for an option; " +
				"return a plain value"
		}
	}
	return to, refused, nil
}

// An option is pgx's interpretation of a leading argument.
type option uint8

const (
	noOption option = iota
	modeOption
	formatOption
	rewriterOption
)

// optionOf returns pgx's interpretation of a leading argument, and the argument's type.
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

// connOf returns pgx's connection, inside of a driver's connection, if its type satisfies is.
func connOf(base any, is func(reflect.Type) bool) (reflect.Value, bool) {
	for range wrapped {
		m := reflect.ValueOf(base).MethodByName("Conn")
		if isGetter(m) && is(m.Type().Out(0)) {
			return m.Call(nil)[0], true
		}
		inner := unwrap(base)
		if inner == nil {
			break
		}
		base = inner
	}
	return reflect.Value{}, false
}

// Unprepared returns the argument with which pgx, under database/sql, sends a query without a prepared statement,
// which the session could have dropped; none for other drivers.
func (l *Liveness) Unprepared() []driver.NamedValue {
	if l.state == nil {
		return nil
	}
	method, ok := reflect.TypeOf(l.state).MethodByName("Config")
	if !ok || method.Type.NumOut() != 1 || method.Type.Out(0).Kind() != reflect.Pointer {
		return nil
	}
	field, ok := method.Type.Out(0).Elem().FieldByName("DefaultQueryExecMode")
	if !ok || !ofPgx(field.Type) || field.Type.Kind() != reflect.Int32 {
		return nil
	}
	mode := reflect.New(field.Type).Elem()
	for mode.SetInt(1); mode.Int() < 9; mode.SetInt(mode.Int() + 1) {
		if fmt.Sprint(mode.Interface()) == "exec" {
			return []driver.NamedValue{{Ordinal: 1, Value: mode.Interface()}}
		}
	}
	return nil
}

// BatchCommit returns the COMMIT statement of the transaction that a *pgx.Batch begins; empty if the batch begins
// none. pgx keeps the statement in a field, and sends it unchanged. ok is false if this version of pgx has no such
// field.
func BatchCommit(batch any) (text string, ok bool) {
	options := reflect.ValueOf(batch).Elem().FieldByName("txOptions")
	if !options.IsValid() || options.Kind() != reflect.Pointer {
		return "", false
	}
	if options.IsNil() {
		return "", true
	}
	commit := options.Elem().FieldByName("CommitQuery")
	if !commit.IsValid() || commit.Type() != stringType {
		return "", false
	}
	return cmp.Or(commit.String(), "commit"), true
}

// IsBeforeBatch reports whether err occurred before pgx executed the first statement of a batch: pgx first prepares
// the statements, and encodes their arguments. After such an error pgx may close the connection.
func IsBeforeBatch(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if t := reflect.TypeOf(err); ofPgx(t) && strings.HasSuffix(t.Name(), "PreprocessingBatch") {
			return true
		}
	}
	return false
}
