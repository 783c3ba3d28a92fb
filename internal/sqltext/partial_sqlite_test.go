package sqltext_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

func TestSQLiteWithin(t *testing.T) {
	for index, want := range map[string]string{
		"CREATE UNIQUE INDEX i ON books (title) WHERE gone = 0":                              "gone = 0",
		"create unique index `i (x` on \"books\" ([a] COLLATE nocase, b desc)\nwhere(a > 1)": "(a > 1)",
		"CREATE UNIQUE INDEX [i where] ON books (title) WHERE a IN (1, 2) AND b = 'where'":   "a IN (1, 2) AND b = 'where'",
		"CREATE UNIQUE INDEX i ON books (title)":                                             "",
		"CREATE UNIQUE INDEX i ON books (title) WHERE \"gone\" = 0":                          "",
		"CREATE UNIQUE INDEX i ON books (title) WHERE gone = 0 -- or not":                    "",
		"CREATE UNIQUE INDEX i ON books (title /* ) where */) WHERE gone = 0":                "",
		"CREATE UNIQUE INDEX i ON books (lower(title)) WHERE gone = 0":                       "",
	} {
		if got := sqltext.SQLiteWithin(index); got != want {
			t.Errorf("%s: %q, want %q", index, got, want)
		}
	}
}
