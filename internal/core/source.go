package core

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/sqlfence/sqlfence/internal/nfc"
)

// lacks returns the names of the tokens that the plan's tables need and given lacks, and the first table that lacks a
// token; nil if given has all tokens.
func (e *Execution) lacks(given []Token) (names []string, first *Table) {
	for i := range e.plan.Tables {
		t := e.table(i)
		switch {
		case !e.callsSource(i, given):
		case names == nil:
			names, first = t.sourceNames, t
		case !slices.Contains(names, t.sourceNames[0]):
			names = append(slices.Clip(names), t.sourceNames[0])
		}
	}
	return names, first
}

// lacks reports whether the table takes tokens and given has no token for the table.
func (t *Table) lacks(given []Token) bool {
	return t.Rules.Fenced() && !slices.ContainsFunc(given, func(token Token) bool { return t.takes(token.Name) })
}

// callsSource reports whether the source of WithTokenSource is called for tokens of the plan's table i. It isn't called
// for a write that claims or adds rows of a table with Claim, because such a write needs no token, nor for a table with
// ClaimOf. For any other table it is called even if the token is optional.
func (e *Execution) callsSource(i int, given []Token) bool {
	t := e.table(i)
	return t.lacks(given) && t.Rules.ClaimOf.Name == "" && (t.Rules.Claim == "" || e.needsToken(i))
}

// supply returns the source's tokens for the tables that lack a token in given.
func (e *Execution) supply(ctx context.Context, given []Token) ([]Token, error) {
	names, t := e.lacks(given)
	if names == nil {
		return nil, nil
	}
	got, err := e.conn.settings.source(ctx, e.supplyBuffer(), names)
	if err != nil {
		return nil, &sourceError{t.Name, err}
	}
	for i := range got {
		got[i].Name = nfc.String(got[i].Name)
	}
	var seen map[string]bool
	if len(got) > 1 {
		seen = make(map[string]bool, len(got))
	}
	for _, token := range got {
		switch {
		case !e.wants(given, token.Name):
			return nil, t.misled("the token source returned a token called %.80q, but its names are %q; return "+
				"their tokens only", token.Name, names)
		case seen[token.Name]:
			return nil, t.misled("the token source returned two tokens called %.80q; return one", token.Name)
		case seen != nil:
			seen[token.Name] = true
		}
	}
	return got, nil
}

// supplyBuffer returns an empty list for the tokens of the token source. An Exec, which mostly needs one token, reuses
// the connection's list. A query gets a new list, because its rows use the tokens later.
func (e *Execution) supplyBuffer() []Token {
	if e.rows {
		return nil
	}
	return e.conn.supplied[:0]
}

// wants reports whether a token of this name is for a table that lacks a token in given.
func (e *Execution) wants(given []Token, name string) bool {
	for i := range e.plan.Tables {
		if e.callsSource(i, given) && e.table(i).takes(name) {
			return true
		}
	}
	return false
}

// misled returns the error for a wrong token from the token source.
func (t *Table) misled(format string, args ...any) error {
	return &Refusal{Sentinel: ErrNoFence, Err: ErrInvalid, Table: t.Name,
		Reason: fmt.Sprintf("table %q: ", t.Name) + fmt.Sprintf(format, args...)}
}

// A sourceError is ErrNoFence with the error of a token source. It doesn't match driver.ErrBadConn, because
// database/sql would discard the connection and call the source again.
type sourceError struct {
	table string
	err   error
}

func (e *sourceError) Error() string {
	return fmt.Sprintf("%v: table %q: the token source: %v", ErrNoFence, e.table, e.err)
}

// About returns the table that the token is for.
func (e *sourceError) About() (table, token string) { return e.table, "" }

func (e *sourceError) As(to any) bool { return errors.As(e.err, to) }

// Is replaces Unwrap, which would show database/sql a driver.ErrBadConn of the source.
func (e *sourceError) Is(target error) bool {
	switch target {
	case ErrNoFence:
		return true
	case driver.ErrBadConn:
		return false
	}
	return errors.Is(e.err, target)
}
