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

	"github.com/sqlfence/sqlfence/internal/nfc"
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
	rows := make([]int, 0, len(target.Keys))
	for _, k := range target.Keys {
		key, err := a.keyText(t, k, args)
		if err != nil {
			return err
		}
		token, ok := keys[key]
		if !ok {
			return &rowError{ErrOutOfScope, t.outOfScope(key), nil}
		}
		rows = append(rows, token-lo)
	}
	if hi-lo == 1 {
		return nil
	}
	if a.rows == nil {
		a.rows = make([][]int, len(a.plan.Tables))
	}
	a.rows[target.Table] = append(a.rows[target.Table], rows...)
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
		key, err := a.keyText(t, k, args)
		if err != nil {
			return err
		}
		if key != t.key(a.tokens[lo]) {
			return &rowError{ErrOutOfScope, t.outOfScope(key), nil}
		}
	}
	return nil
}

// keyText returns the text of a row's key. args are the application's own
// arguments, at the end of the attempt's; what is sent is the value that was read.
func (a *attempt) keyText(t *table, k rewrite.KeyValue, args []driver.NamedValue) (string, error) {
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
		i += len(a.own) - len(args)
		if key, read, ok := textOf(a.own[i].Value, a.fence.profile.dialect); ok {
			a.keep(i, read)
			return key, t.canonical(key)
		}
	}
	return "", &UnguardableError{Table: t.name,
		Reason: "the row's key can't be read from its argument; pass an integer, a string or a UUID, of a type that prints as it is"}
}

// A UUID in any of the spellings that PostgreSQL reads, and as it writes it.
//
// Source: string_to_uuid in PostgreSQL's src/backend/utils/adt/uuid.c.
var (
	anyUUID   = regexp.MustCompile(`^\{?([0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}\}?$`)
	plainUUID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// otherBase is how PostgreSQL 16 and later write an integer in another base.
//
// Source: pg_strtoint64_safe in PostgreSQL's src/backend/utils/adt/numutils.c.
var otherBase = regexp.MustCompile(`^[+-]?0[xXoObB][0-9a-fA-F_]+$`)

// canonical refuses a key that a database may store as another text than this:
// 07 or 7.0 in a column of integers is 7, whose row has another token. What
// begins with \x is how PostgreSQL writes bytes, and drivers take it for those. The
// database compares keys byte by byte with the names of tokens, which are in Unicode's
// normalization form C.
func (t *table) canonical(key string) error {
	if !nfc.Is(key) {
		return &UnguardableError{Table: t.name,
			Reason: fmt.Sprintf("the row's key %+.40q is not in Unicode's normalization form C, as the names of tokens are; store keys in that form (NFC)", key)}
	}
	_, err := strconv.ParseFloat(strings.TrimSpace(key), 64)
	isNumber := err == nil || errors.Is(err, strconv.ErrRange) || otherBase.MatchString(key)
	if n, err := strconv.ParseInt(key, 10, 64); err == nil {
		isNumber = strconv.FormatInt(n, 10) != key
	}
	if isNumber || strings.TrimSpace(key) != key || anyUUID.MatchString(key) && !plainUUID.MatchString(key) ||
		strings.HasPrefix(key, `\x`) {
		return &UnguardableError{Table: t.name,
			Reason: fmt.Sprintf("the row's key %q may be stored as another text; write it as the database does", key)}
	}
	return nil
}

// keep sends v as the argument i, instead of what may answer otherwise when the
// driver asks it again.
func (a *attempt) keep(i int, v any) {
	was := a.own[i].Value
	if _, ok := was.(driver.Valuer); !ok && reflect.TypeOf(was).Kind() != reflect.Pointer {
		return
	}
	if !a.copied {
		a.own, a.copied = slices.Clone(a.own), true
	}
	a.own[i].Value = v
}

// textOf returns the text that a database which speaks d makes of an integer, a
// string or a UUID, and the plain value that it read. Of a value that can tell its
// text pgx may send this text or its plain value, depending on the column, so the
// two have to be the same.
func textOf(v any, d Dialect) (text string, read any, ok bool) {
	text, read, ok = plainText(v, d)
	if s, tells := v.(fmt.Stringer); ok && tells && s.String() != text {
		return "", nil, false
	}
	return text, read, ok
}

// plainText is textOf without regard to what v tells of itself. In PostgreSQL
// bytes may become \x3432, by the column and by the driver.
func plainText(v any, d Dialect) (text string, read any, ok bool) {
	if valuer, ok := v.(driver.Valuer); ok && !isNil(v) {
		plain, err := valuer.Value()
		if err != nil {
			return "", nil, false
		}
		v = plain
	}
	switch v := v.(type) {
	case string:
		return v, v, true
	case []byte:
		return string(v), slices.Clone(v), d != Postgres
	case [16]byte:
		return fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:]), v, true
	}
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer && !r.IsNil() {
		return textOf(r.Elem().Interface(), d)
	}
	switch {
	case r.CanInt():
		return strconv.FormatInt(r.Int(), 10), v, true
	case r.CanUint():
		return strconv.FormatUint(r.Uint(), 10), v, true
	case r.Kind() == reflect.String:
		return r.String(), v, true
	}
	return "", nil, false
}

func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
