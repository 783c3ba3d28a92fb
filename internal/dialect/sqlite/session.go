package sqlite

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/session"
)

// Session has the queries of SQLite's capabilities; there is no server.
var Session = &session.Dialect{
	Text:   Text,
	Canary: canary, ReadProbe: func(*session.Wanted, string) error { return nil },
	Queries: queries, Read: readRow,
	Version: "SELECT 'SQLite ' || sqlite_version()",
	Standby: "1 = 0", // the file is its own server
	Unique:  unique,

	ErrorEndsTx: fact.No,
	HasSettings: fact.Yes,
	HasCharset:  fact.No,
	HasCounts:   fact.Yes,

	Unalterable: unalterable,
}

// unalterable returns a query for what to do if a relation that lacks a column is a view or a virtual table. The query
// recognises a virtual table by the beginning of its definition, which SQLite normalizes.
func unalterable(table session.Name) string {
	const view = "it is a view, and the marks of its rows are in the tables behind it: register those, and write them"
	const virtual = "it is a virtual table, which ALTER TABLE adds no column to: create it with the column, as " +
		"fts5(body, fence_token UNINDEXED), and copy its rows"
	schema := ""
	if table.Schema != "" {
		schema = Text.Quote(table.Schema) + "."
	}
	return "SELECT CASE type WHEN 'view' THEN " + Text.Text(view) + " ELSE " + Text.Text(virtual) +
		" END FROM " + schema + "sqlite_master WHERE name = " + Text.Text(table.Table) +
		" COLLATE NOCASE AND (type = 'view' OR sql LIKE 'CREATE VIRTUAL TABLE%')"
}

func canary(*session.Wanted, bool) string {
	return "SELECT CASE WHEN 1 <= 0 THEN 1 ELSE " + session.Throwing(Text, "1") + " IS NOT NULL END"
}

func queries(w *session.Wanted) []string {
	if !w.Counts {
		return nil
	}
	return []string{"PRAGMA count_changes"}
}

func readRow(w *session.Wanted, row []string) {
	w.Capabilities.ReturnsCounts = !slices.Equal(row, []string{"0"})
}
