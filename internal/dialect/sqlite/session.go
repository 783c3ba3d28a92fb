package sqlite

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/session"
)

// Session is how SQLite is asked: there is no server.
var Session = &session.Dialect{
	Text:   Text,
	Canary: canary, ReadProof: func(*session.Wanted, string) error { return nil },
	Questions: questions, Read: readAnswer,
	Version: "SELECT sqlite_version()",
	Standby: "1 = 0", // the file is its own server
	Unique:  unique,

	ErrorEndsTx: fact.No,
	HasSettings: fact.Yes,
	HasCharset:  fact.No,
	HasCounts:   fact.Yes,
}

func canary(*session.Wanted, bool) string {
	return "SELECT CASE WHEN 1 <= 0 THEN 1 ELSE " + session.Raising(Text, "1") + " IS NOT NULL END"
}

func questions(w *session.Wanted) []string {
	if !w.Counts {
		return nil
	}
	return []string{"PRAGMA count_changes"}
}

func readAnswer(w *session.Wanted, row []string) {
	w.Facts.ReturnsCounts = !slices.Equal(row, []string{"0"})
}
