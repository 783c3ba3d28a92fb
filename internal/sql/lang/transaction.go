package lang

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// InTransaction reports whether a connection is in a transaction after it has executed
// the statements of query; in says whether it was in one before. It recognises
// statements that begin and end transactions. If the text doesn't show the answer,
// it returns true.
func InTransaction(d dialect.Dialect, query string, in bool) bool {
	g, err := grammar(d)
	if err != nil {
		return true
	}
	tokens, fault := lex.Scan(g.Lex, query, lex.EscapesUnknown, nil)
	if fault != nil {
		return true
	}
	t := &lex.Scanned{Src: query, Tokens: tokens, Rules: g.Lex}
	for s := t.StatementFrom(0); !s.Empty(); s = t.StatementFrom(s.Hi) {
		switch at := s.Lo; {
		case t.Word(at, "create") && beginsAtomic(t, s):
			return true // the semicolons and the END are the body's
		case g.Blocks.Is() && (t.Word(at, "xa") || t.Word(at, "set") && setsAutocommit(t, s)):
			return true
		case t.Word(at, "begin", "start"):
			in = true
		case t.Word(at, "rollback"):
			back := t.Word(at+1, "to") || t.Word(at+1, "work", "transaction") && t.Word(at+2, "to")
			in = in && back
		case t.Word(at, "commit", "end", "abort"), t.Word(at, "prepare") && t.Word(at+1, "transaction"):
			in = false
		}
		if s.Hi-s.Lo > 2 && t.Word(s.Hi-1, "chain") && !t.Word(s.Hi-2, "no") {
			in = true
		}
	}
	return in
}

// setsAutocommit reports whether a statement has the name of that setting in it.
func setsAutocommit(t *lex.Scanned, s lex.Span) bool {
	for i := s.Lo + 1; i < s.Hi; i++ {
		if lex.EqualFold(strings.Trim(t.TokenText(i), "@`"), "autocommit") {
			return true
		}
	}
	return false
}

// beginsAtomic reports whether a statement has BEGIN ATOMIC in it, with which the
// body of a function begins.
func beginsAtomic(t *lex.Scanned, s lex.Span) bool {
	for i := s.Lo + 1; i+1 < s.Hi; i++ {
		if t.Word(i, "begin") && t.Word(i+1, "atomic") {
			return true
		}
	}
	return false
}
