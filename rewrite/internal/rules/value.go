package rules

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// values has methods about the values that a parsed text contains.
type values struct{ *read.Text }

// isPlain reports whether a value is a placeholder, NULL, or a plain constant.
func (t values) isPlain(value lex.Range) bool {
	switch tok := value.Lo; {
	case value.Hi-value.Lo != 1:
		return false
	case t.Word(tok, "null"), t.Tokens[tok].Kind == lex.Param:
		return true
	case t.Tokens[tok].Kind == lex.Text:
		return t.TokenText(tok)[0] == '\''
	default:
		return t.isNumber(tok)
	}
}

func (t values) isNumber(tok int32) bool {
	return t.Tokens[tok].Kind == lex.Number && strings.Trim(t.TokenText(tok), "0123456789.") == ""
}

// keepsType reports whether a value that isn't plain is stored unchanged inside a CASE. Some servers change NOW() or
// 0x41.
func (t values) keepsType(value lex.Range) bool {
	first, next := value.Lo, value.Lo+1
	switch n := value.Hi - value.Lo; {
	case n == 1:
		return t.Word(first, "true", "false")
	case n == 2:
		return t.isNegative(value)
	}
	return !value.Empty() && t.Tokens[next].Is('(') && t.Tokens[next].Mate == value.Hi-1 &&
		t.Word(first, keepingTypes...)
}

// keepingTypes are functions with results that are stored unchanged inside a CASE.
var keepingTypes = []string{"uuid", "uuid_to_bin", "unhex", "hex", "sha2", "lower", "upper", "concat",
	"inet_aton", "inet6_aton", "json_object", "json_array", "last_insert_id", "unix_timestamp"}

// isNegative reports whether a value is a number with a minus sign.
func (t values) isNegative(item lex.Range) bool {
	return item.Hi-item.Lo == 2 && t.Tokens[item.Lo].Is('-') && t.isNumber(item.Lo+1)
}

// isBare reports whether a value is a placeholder or a constant, with or without a cast.
func (t values) isBare(value lex.Range) bool {
	if n := value.Hi - value.Lo; n == 4 && t.isCast(value.Lo+1) {
		value.Hi = value.Lo + 1
	}
	return t.isPlain(value) || t.isConstant(value)
}

// isCast reports whether a cast to a type of one word begins at a token.
func (t values) isCast(token int32) bool {
	_, named := t.Name(int(token) + 2)
	return named && t.Tokens[token].Is(':') && t.Tokens[token+1].Is(':')
}

// isConstant reports whether a value is a number with a minus, or a word for one.
func (t values) isConstant(value lex.Range) bool {
	return t.isNegative(value) ||
		value.Hi-value.Lo == 1 && t.Word(value.Lo, "true", "false", "current_timestamp", "current_date")
}

// hasType reports whether the value's type stays the same inside a CASE. A ROW(...) has no type: the column provides
// the type.
func (t values) hasType(value lex.Range) bool {
	first, next := value.Lo, value.Lo+1
	switch n := value.Hi - value.Lo; {
	case n == 1 && t.isNumber(first), t.isConstant(value):
		return true
	case n == 4 && t.isCast(next):
		return t.isPlain(lex.Range{Lo: first, Hi: next})
	}
	// Any other function, even as an argument, may return a set, and a CASE can't hold a set-returning function.
	if value.Hi-value.Lo < 3 || !t.Tokens[next].Is('(') || t.Tokens[next].Mate != value.Hi-1 {
		return false
	}
	for i := next + 1; i < value.Hi-1; i++ {
		if t.Tokens[i].Is('(') {
			return false
		}
	}
	return t.Word(first, "coalesce", "greatest", "least", "abs", "concat", "length", "lower", "md5", "now", "upper")
}

// conjuncts returns the parts of a condition that AND connects. If the parts are unclear, it returns none.
func (t values) conjuncts(s lex.Range) (parts []lex.Range) {
	from := s.Lo
	for i := s.Lo; i < s.Hi; i++ {
		switch {
		case t.Tokens[i].Is('('):
			i = t.Tokens[i].Mate
		case t.Word(i, "and"):
			parts = append(parts, lex.Range{Lo: from, Hi: i})
			from = i + 1
		case t.Word(i, "or", "case", "between", "not"):
			return nil
		}
	}
	return append(parts, lex.Range{Lo: from, Hi: s.Hi})
}

// comparedValue returns the value of a condition's part of the form column = value with a placeholder or a constant.
func (t values) comparedValue(part lex.Range) (value lex.Range, ok bool) {
	value = lex.Range{Lo: part.Hi - 1, Hi: part.Hi}
	switch column := value.Lo - 1 - part.Lo; {
	case column == 3 && !t.Tokens[part.Lo+1].Is('.'), column != 1 && column != 3, !t.Tokens[value.Lo-1].Is('='):
		return value, false
	}
	_, ok = t.Name(int(value.Lo) - 2)
	return value, ok && !t.Word(value.Lo, "null") && t.isPlain(value)
}
