package main

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/dialect"
)

// An oracle reads statements with a database's own parser.
type oracle interface {
	dialect() dialect.Dialect
	// read returns a text's parts; ok is false if it isn't valid.
	read(sql string) (r reading, ok bool)
	// table reads a CREATE TABLE; its table is nil if it isn't valid.
	table(sql string) (name string, made *table)
	// accept gives a text of a program the placeholders that it has for this database.
	accept(sql string) string
}

// A reading is the parser's result for a text.
type reading struct {
	statements int
	defines    bool     // tables, indexes or other parts of the schema
	whole      []string // tables that TRUNCATE or COPY writes to
	writes     []write
}

// A write is one write of rows.
type write struct {
	verb  string // INSERT, UPDATE, DELETE, MERGE, REPLACE
	table string

	// Of an INSERT:
	columns []string // nil without a list
	rows    string   // VALUES, SELECT, DEFAULT VALUES
	items   []string // what each column gets in the first row: a kind of expression
}

// functionKind names a built-in function; other functions share one kind.
func functionKind(name string) string {
	own := []string{"gen_random_uuid", "uuid_generate_v4", "nextval", "unnest", "now", "timezone", "coalesce",
		"json_extract", "random", "randomblob", "hex", "lower", "max", "min", "md5", "datetime", "last_insert_rowid"}
	if slices.Contains(own, name) {
		return "function " + name + "()"
	}
	return "another function"
}
