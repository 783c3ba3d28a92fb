package lang

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/dialect"
)

// Transaction control never counts, because nothing may be sent before it; a comment doesn't either.
func TestMayExecute(t *testing.T) {
	for query, want := range map[string][2]bool{
		"EXECUTE a":                                 {true, true},
		"EXPLAIN ANALYZE execute a(1)":              {true, true},
		"CREATE TABLE b AS EXECUTE a":               {true, true},
		"SELECT query_to_xml('EXECUTE a', $1)":      {true, true},
		"DO $$ BEGIN EXECUTE 'EXECUTE a'; END $$":   {true, true},
		"BEGIN; EXECUTE a":                          {true, false},
		"ROLLBACK; EXECUTE a;":                      {true, false},
		"SELECT 1 /* execute */":                    {false, true},
		"SELECT 1 -- execute":                       {false, true},
		"ROLLBACK /* action='execute' */":           {false, true},
		"ROLLBACK TO SAVEPOINT execute;":            {false, true},
		"SAVEPOINT \"execute\"":                     {false, true},
		"SET application_name = 'execute'":          {false, true},
		"SELECT 'execute":                           {true, false},
		"SELECT executed_at FROM pens":              {false, true},
		"SELECT 1":                                  {false, true},
		"LOCK TABLE pens /* execute */":             {false, true},
		"COMMIT -- execute\n; SELECT 1 /*execute*/": {false, false},
	} {
		if may, alone := MayExecute(dialect.Postgres, query); may != want[0] || alone != want[1] {
			t.Errorf("%s: %v, %v", query, may, alone)
		}
	}
}

// Prepared finds the statement of a PREPARE in every spelling, and returns any similar text unchanged.
func TestPreparedFindsTheStatementOfPREPARE(t *testing.T) {
	for text, want := range map[string]string{
		"PREPARE a AS SELECT 1":                                       " SELECT 1",
		"prepare a(int, numeric(10, 2)) as SELECT $1":                 " SELECT $1",
		`PREPARE "a b"("char")AS(SELECT 1)`:                           "(SELECT 1)",
		"PREPARE a--(\nAS DELETE FROM books WHERE id = 1 --)  AS x":   " DELETE FROM books WHERE id = 1 --)  AS x",
		"PREPARE a/**/AS/**/UPDATE/**/books AS b SET price = 66":      "/**/UPDATE/**/books AS b SET price = 66",
		"PREPARE t/*x*/(int/*) AS SELECT 1 --*/)AS UPDATE books SET ": " UPDATE books SET ",
		"SELECT 1 AS a":                    "SELECT 1 AS a",
		"UPDATE books AS b SET price = 1":  "UPDATE books AS b SET price = 1",
		"PREPARE a.b AS SELECT 1":          "PREPARE a.b AS SELECT 1",
		"PREPARE":                          "PREPARE",
		"PREPARE a (":                      "PREPARE a (",
		"PREPARE TRANSACTION 'a'":          "PREPARE TRANSACTION 'a'",
		"SELECT 1; PREPARE a AS UPDATE b;": "SELECT 1; PREPARE a AS UPDATE b;",
	} {
		if got := Prepared(dialect.Postgres, text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A name is found in any case and spelling, but not inside of a longer one, unless the server may have cut that.
func TestNamesPrepared(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, test := range []struct {
		query, name string
		want        bool
	}{
		{"EXECUTE Pens(1)", "pens", true},
		{`EXECUTE "a ""b"`, `a "b`, true},
		{`EXECUTE U&"\0061"`, "a", true},
		{"EXECUTE " + long + "bc", long, true},
		{"EXECUTE pens$1", "pens", false},
		{"EXECUTE openspens", "pens", false},
		{"EXECUTE openspens, pens", "pens", true},
		{"EXECUTE pensé", "pens", false},
		{"EXECUTE pens", "", false},
		{`EXECUTE ""`, "", true},
	} {
		if got := NamesPrepared(dialect.Postgres, test.query, test.name); got != test.want {
			t.Errorf("%s, %s: %v", test.query, test.name, got)
		}
	}
}
