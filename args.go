package sqlfence

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/rewrite"
)

func hasNamed(args []driver.NamedValue) bool {
	return slices.ContainsFunc(args, func(a driver.NamedValue) bool { return a.Name != "" })
}

// matchRows finds for each row of an INSERT, the plan's target i, the token that
// covers it. args are the application's own arguments.
func (a *attempt) matchRows(i int, args []driver.NamedValue) error {
	target := a.plan.Targets[i]
	t := a.table(target.Table)
	lo, hi := a.tokensOf(target.Table)
	if lo == hi { // Optional, and there is none
		return nil
	}
	keys := make(map[string]int, hi-lo)
	for token := lo; token < hi; token++ {
		keys[t.key(a.tokens[token])] = token
	}
	rows := make([]int, len(target.Keys))
	for row, k := range target.Keys {
		key, err := t.keyText(k, args, a.fence.profile.dialect)
		if err != nil {
			return err
		}
		token, ok := keys[key]
		if !ok {
			return &rowError{ErrOutOfScope, t.outOfScope(key), nil}
		}
		rows[row] = token
	}
	if hi-lo == 1 {
		return nil
	}
	if a.values.Rows == nil {
		a.values.Rows = make([][]int, len(a.plan.Targets))
	}
	a.values.Rows[i] = rows
	return nil
}

// keepKeys refuses an assignment of the key, by the plan's target i, that could
// move a row out of its token's scope. With one token the guard lets only rows
// with its key through, so they stay if the key assigned is that one; with
// several it isn't known which row comes to be which. args are the application's
// own arguments.
func (a *attempt) keepKeys(i int, args []driver.NamedValue) error {
	target := a.plan.Targets[i]
	t := a.table(target.Table)
	lo, hi := a.tokensOf(target.Table)
	switch hi - lo {
	case 0: // Optional, and there is none
		return nil
	case 1:
	default:
		return &UnguardableError{Table: t.name, Reason: "it assigns the key column, and which of the context's tokens " +
			"is for which row can't be seen; leave the column out, or write each row with its own token alone"}
	}
	for _, k := range target.NewKeys {
		key, err := t.keyText(k, args, a.fence.profile.dialect)
		if err != nil {
			return err
		}
		if key != t.key(a.tokens[lo]) {
			return &rowError{ErrOutOfScope, t.outOfScope(key), nil}
		}
	}
	return nil
}

// keyText returns the text of a row's key in a database that speaks d.
func (t *table) keyText(k rewrite.KeyValue, args []driver.NamedValue, d Dialect) (string, error) {
	if k.Name == "" && k.Ordinal == 0 {
		return k.Text, t.canonical(k.Text)
	}
	i := k.Ordinal - 1
	if hasNamed(args) {
		// Drivers differ in what they bind where names are mixed with places, or
		// given twice.
		i = -1
		for n, arg := range args {
			switch {
			case arg.Name == "" || arg.Name == k.Name && i >= 0:
				return "", &UnguardableError{Table: t.name, Reason: "arguments with and without names, or of one name, can't be told apart; name each once"}
			case arg.Name == k.Name:
				i = n
			}
		}
	}
	if i >= 0 && i < len(args) {
		if key, ok := textOf(args[i].Value, d); ok {
			return key, t.canonical(key)
		}
	}
	return "", &UnguardableError{Table: t.name,
		Reason: "the row's key can't be read from its argument; pass an integer, a string or a UUID, of a type that prints as it is"}
}

// A UUID in any of the spellings that databases read, and as they write it. 32
// digits without dashes are also what a hash is written as, so they may stay.
var (
	anyUUID   = regexp.MustCompile(`^\{?[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}\}?$`)
	plainUUID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[0-9a-f]{32}$`)
)

// anyBytes is how PostgreSQL writes a column of bytes. Drivers take what is
// written like that for the bytes themselves.
var anyBytes = regexp.MustCompile(`^\\x([0-9a-f]{2})*$`)

// canonical refuses a key that a database may store as another text than this:
// 07 or 7.0 in a column of integers is 7, whose row has another token.
func (t *table) canonical(key string) error {
	_, err := strconv.ParseFloat(strings.TrimSpace(key), 64)
	isNumber := err == nil || errors.Is(err, strconv.ErrRange)
	if n, err := strconv.ParseInt(key, 10, 64); err == nil {
		isNumber = strconv.FormatInt(n, 10) != key
	}
	if isNumber || strings.TrimSpace(key) != key || anyUUID.MatchString(key) && !plainUUID.MatchString(key) ||
		anyBytes.MatchString(key) {
		return &UnguardableError{Table: t.name,
			Reason: fmt.Sprintf("the row's key %q may be stored as another text; write it as the database does", key)}
	}
	return nil
}

// textOf returns the text that a database which speaks d makes of an integer, a
// string or a UUID. Of a value that can tell its text pgx may send this text or
// its plain value, depending on the column, so the two have to be the same.
func textOf(v any, d Dialect) (string, bool) {
	text, ok := plainText(v, d)
	if s, tells := v.(fmt.Stringer); ok && tells && s.String() != text {
		return "", false
	}
	return text, ok
}

// plainText is textOf without regard to what v tells of itself. In PostgreSQL
// bytes may become \x3432, by the column and by the driver.
func plainText(v any, d Dialect) (string, bool) {
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
		return string(v), d != Postgres
	case [16]byte:
		return fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:]), true
	}
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer && !r.IsNil() {
		return textOf(r.Elem().Interface(), d)
	}
	switch {
	case r.CanInt():
		return strconv.FormatInt(r.Int(), 10), true
	case r.CanUint():
		return strconv.FormatUint(r.Uint(), 10), true
	case r.Kind() == reflect.String:
		return r.String(), true
	}
	return "", false
}

func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
