package fencetest

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Match returns nil if actual, a statement that sqlfence has sent, has all words and signs of expected, the program's
// statement, in their order. White space and the words that a guard has inserted don't matter. Otherwise the error
// shows both statements. Match is for a mock of the driver under a fenced database:
//
//	raw, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherFunc(fencetest.Match)))
//	db, err := sqlfence.OpenDB(connector, sqlfence.WithDialect(sqlfence.Postgres), sqlfence.WithTable("books")) // of raw.Driver()
//	mock.ExpectExec("UPDATE books SET price = $1 WHERE id = $2").WithArgs(30, 1, sqlmock.AnyArg(), sqlmock.AnyArg())
//
// On PostgreSQL the guard's arguments come last: the token's value with RowFence, its name and value with Ledger.
//
// A mock that replaces the whole fenced database needs no Match, because it receives the program's statements. It
// returns a *sqlfence.StaleError for a late write.
func Match(expected, actual string) error {
	if word, ok := follows(expected, actual); !ok {
		return fmt.Errorf("fencetest: %q isn't, behind what comes before it, in what was sent\nwant %s\ngot  %s",
			word, expected, actual)
	}
	return nil
}

// follows reports whether sent contains the words and signs of text, in order. Otherwise it returns the first missing
// word or sign.
func follows(text, sent string) (missing string, ok bool) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		n := strings.IndexFunc(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		switch n {
		case -1:
			n = len(text)
		case 0:
			_, n = utf8.DecodeRuneInString(text)
		}
		i := strings.Index(sent, text[:n])
		if i < 0 {
			return text[:n], false
		}
		text, sent = text[n:], sent[i+n:]
	}
	return "", true
}
