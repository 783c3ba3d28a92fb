package lang

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// InTransaction reports whether a connection is in a transaction after the connection has executed the statements of
// query; in reports whether it was in a transaction before. InTransaction recognises statements that begin and end
// transactions. If the text doesn't show the answer, the result is true.
func InTransaction(d dialect.Dialect, query string, in bool) bool {
	t, g, ok := scan(d, query)
	if !ok {
		return true
	}
	for s := t.StatementFrom(0); !s.Empty(); s = t.StatementFrom(s.Hi) {
		switch at := s.Lo; {
		case t.Word(at, "create") && (beginsAtomic(&t, s) || s.Hi-at > 2 && // its semicolons and END are the body's
			(t.Word(at+1, "trigger") || t.Word(at+2, "trigger"))),
			g.Blocks.Is() && (t.Word(at, "xa") || t.Word(at, "set") && setsAutocommit(&t, s)):
			return true
		case t.Word(at, "begin", "start"):
			in = true
		case t.Word(at, "rollback"):
			in = in && afterTo(&t, at) > 0
		case commits(&t, at):
			in = false
		}
		if s.Hi-s.Lo > 2 && t.Word(s.Hi-1, "chain") && !t.Word(s.Hi-2, "no") {
			in = true
		}
	}
	return in
}

// afterTo returns the token after the TO of the ROLLBACK at a token; 0 for a ROLLBACK of the transaction.
//
//	ROLLBACK [WORK | TRANSACTION [name]] [TO ...]
func afterTo(t *lex.Scanned, at int32) int32 {
	if at++; t.Word(at, "work", "transaction") {
		if at++; t.Tokens[at].Kind != lex.End && t.Word(at+1, "to") { // SQLite allows a name
			at++
		}
	}
	if t.Word(at, "to") {
		return at + 1
	}
	return 0
}

// commits reports whether the statement at a token ends a transaction and isn't a ROLLBACK.
func commits(t *lex.Scanned, at int32) bool {
	return t.Word(at, "commit", "end", "abort") || t.Word(at, "prepare") && t.Word(at+1, "transaction")
}

// A TxControl is a statement about a savepoint, or a statement that ends a transaction.
type TxControl struct {
	Verb TxVerb
	Name string // the name of the savepoint; empty if it can't be read
}

// A TxVerb is what a [TxControl] does.
type TxVerb uint8

// The verbs. EndTx stands for all that end a transaction.
const (
	EndTx TxVerb = iota
	SetSavepoint
	ReleaseSavepoint
	RollbackToSavepoint
)

// TxControls returns the statements of query about savepoints and transactions, in their order. alone reports whether
// query is a single statement. An unreadable text isn't alone, and counts as a ROLLBACK TO without a name, so that the
// caller takes the lock of a Hold for lost.
func TxControls(d dialect.Dialect, query string) (all []TxControl, alone bool) {
	t, _, ok := scan(d, query)
	if !ok {
		return []TxControl{{Verb: RollbackToSavepoint}}, false
	}
	first, body := t.StatementFrom(0), false
	for s := first; !s.Empty(); s = t.StatementFrom(s.Hi) {
		c, at := TxControl{}, s.Lo+1 // of the savepoint's name, or of a word before it
		switch {
		case t.Word(s.Lo, "create") && beginsAtomic(&t, s):
			body = true
			continue
		case body && t.Word(s.Lo, "end"): // of the function's body
			body = false
			continue
		case t.Word(s.Lo, "savepoint"):
			c.Verb = SetSavepoint
		case t.Word(s.Lo, "release"):
			c.Verb = ReleaseSavepoint
		case t.Word(s.Lo, "rollback"):
			if to := afterTo(&t, s.Lo); to > 0 {
				at, c.Verb = to, RollbackToSavepoint
			}
		case !commits(&t, s.Lo):
			continue
		}
		if c.Verb != EndTx {
			if t.Word(at, "savepoint") && at+1 < s.Hi {
				at++
			}
			c.Name, _ = t.Name(int(at))
		}
		all = append(all, c)
	}
	return all, t.StatementFrom(first.Hi).Empty()
}

// setsAutocommit reports whether a statement names the setting autocommit.
func setsAutocommit(t *lex.Scanned, s lex.Range) bool {
	for i := s.Lo + 1; i < s.Hi; i++ {
		if lex.EqualFold(strings.Trim(t.TokenText(i), "@`"), "autocommit") {
			return true
		}
	}
	return false
}

// beginsAtomic reports whether a statement contains BEGIN ATOMIC, which begins the body of a function.
func beginsAtomic(t *lex.Scanned, s lex.Range) bool {
	for i := s.Lo + 1; i+1 < s.Hi; i++ {
		if t.Word(i, "begin") && t.Word(i+1, "atomic") {
			return true
		}
	}
	return false
}
