package sqlfence

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// driverOptions is what leading arguments tell a driver about an execution.
type driverOptions struct {
	count    int  // how many arguments are options
	rewrites bool // one of them replaces names in the text by placeholders
}

// driverOptions recognises the options that pgx takes before the arguments: an
// execution mode, result formats, and a QueryRewriter. Of the last only pgx's
// own NamedArgs and StrictNamedArgs can be allowed, which put placeholders where
// names stand; another might write any statement, after the guard was added.
func (f *fence) driverOptions(args []driver.NamedValue) (driverOptions, error) {
	var o driverOptions
	if f.profile.dialect != Postgres || len(f.tables) == 0 {
		return o, nil
	}
	for _, arg := range args {
		switch arg.Value.(type) {
		case nil, int64, float64, bool, []byte, string, time.Time, int, int32:
			return o, nil
		}
		t := reflect.TypeOf(arg.Value)
		_, rewrites := t.MethodByName("RewriteQuery")
		ofPgx := strings.HasPrefix(t.PkgPath(), "github.com/jackc/pgx/")
		switch name := t.Name(); {
		case rewrites && ofPgx && (name == "NamedArgs" || name == "StrictNamedArgs"):
			o.rewrites = true
		case rewrites:
			return o, &UnguardableError{Reason: fmt.Sprintf("the query rewriter %v could write to any table; pass arguments, or pgx.NamedArgs", t)}
		case ofPgx && slices.Contains([]string{"QueryExecMode", "QueryResultFormats", "QueryResultFormatsByOID"}, name):
		default:
			return o, nil
		}
		o.count++
	}
	return o, nil
}

func hasNamed(args []driver.NamedValue) bool {
	return slices.ContainsFunc(args, func(a driver.NamedValue) bool { return a.Name != "" })
}

// matchRows finds for each row of an INSERT the token that covers it. args are
// the application's arguments without a driver's options.
func (a *attempt) matchRows(args []driver.NamedValue) error {
	keys := make(map[string]int, len(a.tokens))
	for i, t := range a.tokens {
		keys[a.table.key(t)] = i
	}
	rows := make([]int, len(a.plan.Keys))
	used := make([]int, len(a.tokens)) // index among the used ones, from 1
	var tokens []Token
	for i, k := range a.plan.Keys {
		key, err := a.keyText(k.Name, k.Ordinal, k.Text, args)
		if err != nil {
			return err
		}
		token, ok := keys[key]
		if !ok {
			return &rowError{ErrOutOfScope, a.outOfScope(key), nil}
		}
		if used[token] == 0 {
			tokens = append(tokens, a.tokens[token])
			used[token] = len(tokens)
		}
		rows[i] = used[token] - 1
	}
	a.tokens = tokens
	if len(tokens) > 1 {
		a.values.Rows = rows
	}
	return nil
}

// keyText returns the text of a row's key: of the argument called name, else of
// the one at the place ordinal, else a constant.
func (a *attempt) keyText(name string, ordinal int, text string, args []driver.NamedValue) (string, error) {
	if name == "" && ordinal == 0 {
		return text, nil
	}
	i := slices.IndexFunc(args, func(v driver.NamedValue) bool { return name != "" && v.Name == name })
	if i < 0 {
		i = ordinal - 1
	}
	if i >= 0 && i < len(args) {
		if key, ok := textOf(args[i].Value); ok {
			return key, nil
		}
	}
	return "", &UnguardableError{Table: a.table.name,
		Reason: "the key of a row to insert can't be read from its argument; pass an integer, a string or a UUID"}
}

// textOf returns the text that a database makes of an integer, a string or a UUID.
func textOf(v any) (string, bool) {
	if valuer, ok := v.(driver.Valuer); ok && !isNil(v) {
		plain, err := valuer.Value()
		if err != nil {
			return "", false
		}
		v = plain
	}
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	case [16]byte:
		return fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:]), true
	}
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer && !r.IsNil() {
		return textOf(r.Elem().Interface())
	}
	switch {
	case r.CanInt(), r.CanUint(), r.Kind() == reflect.String:
		return fmt.Sprint(r.Interface()), true
	}
	return "", false
}

func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
