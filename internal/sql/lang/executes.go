package lang

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// runsNothing are the first words of statements that never run another one, whatever names and strings they contain.
var runsNothing = []string{
	"begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "set", "reset", "show", "lock",
	"listen", "unlisten", "notify", "deallocate", "discard", "close",
}

// MayExecute reports whether a text may run a prepared statement by SQL's EXECUTE: the word occurs outside of comments,
// or in a string, which a function may run. alone reports whether the text has only one statement. An unreadable text
// may execute anything.
func MayExecute(d dialect.Dialect, query string) (may, alone bool) {
	if !contains(query, "execute") {
		return false, true
	}
	tokens, ok := tokensOf(d, query)
	if !ok {
		return true, false
	}
	alone = true
	for i := range tokens {
		t := &tokens[i]
		alone = alone && (!t.Is(';') || tokens[i+1].Kind == lex.End)
		switch t.Kind {
		case lex.Word:
			may = may || t.IsWord(query, "execute")
		case lex.Text:
			may = may || contains(query[t.Start:t.End], "execute")
		}
	}
	for _, word := range runsNothing {
		may = may && !(alone && tokens[0].IsWord(query, word))
	}
	return may, alone
}

// Prepared returns the statement that an SQL PREPARE prepares. Any other text is returned unchanged.
func Prepared(d dialect.Dialect, text string) string {
	tokens, ok := tokensOf(d, text)
	if !ok || len(tokens) < 4 || !tokens[0].IsWord(text, "prepare") ||
		tokens[1].Kind != lex.Word && tokens[1].Kind != lex.Quoted {
		return text
	}
	next := 2
	if tokens[next].Is('(') {
		next = int(tokens[next].Mate) + 1
	}
	if !tokens[next].IsWord(text, "as") {
		return text
	}
	return text[tokens[next].End:]
}

// contains reports whether a text has a word of ASCII letters in it, in any case.
func contains(text, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i]|0x20 == word[0] && strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// NamesPrepared reports whether a text may contain the name of a prepared statement. In doubt it reports true: the name
// need not follow EXECUTE directly, and escapes can spell any name.
func NamesPrepared(d dialect.Dialect, query, name string) bool {
	g, err := grammar(d)
	if err != nil {
		return true
	}
	query, name = strings.ToLower(query), strings.ToLower(name)
	cut := g.Lex.MayBeCut(name) // the text may have more of the name
	quoted := `"` + strings.ReplaceAll(name, `"`, `""`)
	if !cut {
		quoted += `"`
	}
	if strings.Contains(query, `u&"`) || strings.Contains(query, quoted) {
		return true
	}
	if name == "" {
		return false
	}
	for at := 0; ; at++ {
		i := strings.Index(query[at:], name)
		if i < 0 {
			return false
		}
		at += i
		end := at + len(name)
		if (at == 0 || !lex.IsNamePart(query[at-1])) && (cut || end == len(query) || !lex.IsNamePart(query[end])) {
			return true
		}
	}
}
