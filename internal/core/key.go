package core

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/nfc"
)

// keyedTokens returns those of the tokens that are for single rows of the table.
func (t *Table) keyedTokens(tokens []Token) (found []Token) {
	for _, token := range tokens {
		if t.takes(token.Name) {
			found = append(found, token)
		}
	}
	return found
}

// tokenName returns the name of the table's token, with the row's key if each row has its own token.
func (t *Table) tokenName(key string) string {
	if !t.byRow() {
		return t.Resource
	}
	return t.Resource + "/" + key
}

// outOfScope returns the error for a row with this key, which no token of the context covers. err is the base driver's
// error, or nil if nothing was sent.
func (t *Table) outOfScope(key string, err error) error {
	if t.Rules.Claim != "" {
		return &Refusal{Sentinel: ErrOutOfScope, Err: err, Table: t.Name,
			Reason: fmt.Sprintf("table %q: the context carries no claim of the row, a token called %q; add its "+
				"ClaimToken with WithFence, or take the row over by raising the column %q", t.Name,
				t.Resource+"/"+key, t.Rules.Claim)}
	}
	return &Refusal{Sentinel: ErrOutOfScope, Err: err, Table: t.Name,
		Reason: fmt.Sprintf("table %q: the context carries no token called %q; add one with WithFence", t.Name,
			t.Resource+"/"+key)}
}

// matchRows finds for each row of an INSERT, the plan's target i, the token that
// covers it.
func (e *Execution) matchRows(i int) error {
	target := &e.plan.Targets[i]
	t, tokens := e.table(target.Table), e.with.tokens.of(target.Table)
	if len(tokens) == 0 { // no token is needed
		return nil
	}
	keys := make(map[string]int, len(tokens))
	for n, token := range tokens {
		keys[t.key(token)] = n
	}
	// If the statement also assigns keys, an existing row could get a new row's key, and leave its token's scope.
	free := t.Rules.UnfencedInserts && !target.AssignsKey
	rows := make([]int, len(target.Keys))
	for row, k := range target.Keys {
		key, err := e.keyText(t, k)
		if err == nil && e.conn.settings.profile.Errors.ChoosesKey(key) {
			err = t.unguardable(nil, fmt.Sprintf("where a new row's key is %q the database may choose another "+
				"one; give the row its key", key))
		}
		n, ok := keys[key]
		switch {
		case err == nil && ok:
			rows[row] = n
		case free:
			rows[row] = guard.NoToken
		case err != nil:
			return err
		default:
			return t.outOfScope(key, nil)
		}
	}
	if len(tokens) > 1 || t.Rules.UnfencedInserts {
		e.with.tokens.addRows(target.Table, len(e.plan.Tables), rows)
	}
	return nil
}

// oneKey refuses a statement under several tokens if the guard can check the keys of new rows only after the rows are
// stored. It also refuses such a statement as a Query, which would return the rows of the guard's RETURNING.
func (e *Execution) oneKey(i int) error {
	target := &e.plan.Targets[i]
	t, tokens := e.table(target.Table), e.with.tokens.of(target.Table)
	switch {
	case len(tokens) > 1:
		return t.unguardable(nil, "the rows' keys are unknown before the statement runs, and the context carries "+
			"several tokens for this table; "+
			"write INSERT ... VALUES with the keys as arguments, or insert the rows of one token per call")
	case len(tokens) == 1 && e.rows && e.plan.ReturnsChecks:
		return t.unguardable(nil, "the rows' keys are unknown before the statement runs, and a query can't check "+
			"them; run it with Exec")
	}
	return nil
}

// keepKeys refuses an assignment of the key, by the plan's target i, that could move a row out of its token's scope.
// With one token the guard lets only rows with the token's key through, so the assigned key must be the token's. With
// several tokens the new key of each row is unknown.
func (e *Execution) keepKeys(i int) error {
	target := &e.plan.Targets[i]
	t, tokens := e.table(target.Table), e.with.tokens.of(target.Table)
	switch len(tokens) {
	case 0: // no token is needed
		return nil
	case 1:
	default:
		return t.unguardable(nil, "it assigns the key column while the context carries several tokens for this "+
			"table; leave the column out, or update one row per call")
	}
	for _, k := range target.NewKeys {
		key, err := e.keyText(t, k)
		if err != nil {
			return err
		}
		if key != t.key(tokens[0]) {
			return t.outOfScope(key, nil)
		}
	}
	return nil
}

// keyText returns a row's key as text, from a constant or from an argument. It makes the execution send the argument as
// the value that keyText has read.
func (e *Execution) keyText(t *Table, k guard.KeyValue) (string, error) {
	if k.Unknown {
		return "", t.unguardable(nil, "the row's key is unknown before the statement runs; pass it as an "+
			"argument, or write a constant")
	}
	if k.Name == "" && k.Ordinal == 0 {
		return k.Text, t.canonical(k.Text)
	}
	given := e.read.Args[e.read.options:]
	i := k.Ordinal - 1
	if names := e.argNames(given); names != nil {
		place, ok := names[k.Name]
		if _, mixed := names[""]; mixed || place == ambiguousName {
			return "", t.unguardable(nil, "the row's key is ambiguous among arguments with and without names, or "+
				"of the same name; name each argument once")
		}
		i = -1
		if ok {
			i = place
		}
	}
	if i >= 0 && i < len(given) {
		if key, read, ok := basedriver.Text(given[i].Value, e.conn.settings.profile.Errors.BytesAreText.Is()); ok {
			e.keep(e.read.options+i, read)
			return key, t.canonical(key)
		}
	} else if k.Name != "" {
		return "", t.unguardable(nil, fmt.Sprintf("the row's key is the placeholder called %q, and no argument has "+
			"this name, so that drivers bind one or another; "+
			"pass it as sql.Named(%[1]q, ...), or write ? for all placeholders", k.Name))
	} else if e.read.names != nil {
		return "", t.unguardable(nil, "the row's key is a placeholder without a name, and the arguments have "+
			"names, so that drivers bind one or another; write a name for it, as in :id, or pass the arguments "+
			"without names")
	}
	return "", t.unguardable(nil, "the row's key is an argument of an unsupported type; "+
		"pass an integer, a string or a UUID")
}

// ambiguousName is the place of an argument's name that several arguments have. Drivers choose different arguments for
// such a name, and if named and positional arguments are mixed.
const ambiguousName = -1

// argNames maps the arguments' names to their places; nil if no argument has a name. The map is built once for all
// rows.
func (e *Execution) argNames(given []driver.NamedValue) map[string]int {
	if e.read.namesKnown {
		return e.read.names
	}
	e.read.namesKnown = true
	if !hasNamed(given) {
		return nil
	}
	e.read.names = make(map[string]int, len(given))
	for i, arg := range given {
		if _, ok := e.read.names[arg.Name]; ok {
			i = ambiguousName
		}
		e.read.names[arg.Name] = i
	}
	return e.read.names
}

// keep sends v as argument i instead of a Valuer or pointer, which may return another value to the driver. The
// application's slice isn't changed.
func (e *Execution) keep(i int, v any) {
	if !basedriver.MayChange(e.read.Args[i].Value) {
		return
	}
	if len(e.request.Args) > 0 && &e.read.Args[0] == &e.request.Args[0] {
		e.read.Args = slices.Clone(e.read.Args)
	}
	e.read.Args[i].Value = v
}

// anyUUID matches each spelling of a UUID that PostgreSQL reads, plainUUID the spelling that PostgreSQL prints.
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

// canonical refuses a key that a database may store as a different text: 07 or 7.0 in an integer column is stored as 7,
// and row 7 has another token. A key that begins with \x is refused, because drivers read \x as PostgreSQL's notation
// of bytes. The database compares keys byte by byte with token names, which are in Unicode's normalization form C.
func (t *Table) canonical(key string) error {
	if n, err := strconv.ParseInt(key, 10, 64); err == nil && strconv.FormatInt(n, 10) == key {
		return nil
	}
	if !nfc.Is(key) {
		return t.unguardable(nil, fmt.Sprintf("the row's key %+.40q is not in Unicode's normalization form C, as the "+
			"names of tokens are; "+
			"store keys in that form (NFC)", key))
	}
	_, err := strconv.ParseFloat(strings.TrimSpace(key), 64)
	isNumber := err == nil || errors.Is(err, strconv.ErrRange) || otherBase.MatchString(key)
	if isNumber || strings.TrimSpace(key) != key || anyUUID.MatchString(key) && !plainUUID.MatchString(key) ||
		strings.HasPrefix(key, `\x`) {
		return t.unguardable(nil, fmt.Sprintf("the database may store the row's key %q as another text; write it as "+
			"the database prints it", key))
	}
	return nil
}
