package schema_test

import (
	"database/sql"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
	"github.com/sqlfence/sqlfence/verify"
)

// others are relations besides the patterns' tables. They get no column, or, as partitions, their table's.
var others = map[sqlfence.Dialect][]string{
	sqlfence.Postgres: {
		"CREATE VIEW shelf AS SELECT id FROM books", "CREATE MATERIALIZED VIEW seen AS SELECT id FROM books",
		"CREATE TABLE a_part (id integer NOT NULL)", // its name sorts before its table's
		"CREATE TABLE parts (id integer NOT NULL) PARTITION BY RANGE (id)",
		"ALTER TABLE parts ATTACH PARTITION a_part FOR VALUES FROM (1) TO (10)",
		"DROP SCHEMA IF EXISTS elsewhere CASCADE", "CREATE SCHEMA elsewhere", "CREATE TABLE elsewhere.books (id integer)", "CREATE TABLE elsewhere.lamps (id integer)",
		`CREATE TABLE elsewhere."Ink" (id integer)`, "CREATE TABLE elsewhere.drafts (id integer)",
	},
	sqlfence.SQLite: {
		"CREATE VIEW shelf AS SELECT id FROM books", "CREATE VIRTUAL TABLE area USING rtree (id, x0, x1)",
	},
	sqlfence.MySQL: {
		"CREATE VIEW shelf AS SELECT id FROM books",
		"CREATE TABLE parts (id integer PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2",
	},
}

// hasFence reports whether a relation has the column.
func hasFence(t *testing.T, db *sql.DB, relation string) bool {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+relation+" WHERE 1 = 0")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(columns, "fence_token")
}

// AddFences with a pattern adds the column to each table that the pattern names. Then verify.Check misses no column.
func TestAddFencesByPattern(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		dsn := b.DSN(t)
		plain := b.Raw(t, dsn)
		for _, query := range append([]string{
			"CREATE TABLE books (id integer PRIMARY KEY)", "CREATE TABLE pens (id integer PRIMARY KEY)",
			"CREATE TABLE drafts (id integer PRIMARY KEY)", "CREATE TABLE hats (id integer PRIMARY KEY)",
		}, others[b.Dialect]...) {
			harness.MustExec(t, plain, query)
		}
		if b.Dialect == sqlfence.MySQL {
			_, _ = plain.ExecContext(t.Context(), "CREATE SEQUENCE numbers") // MariaDB lists sequences as tables
		}
		store, err := tokens.New(plain)
		if err == nil {
			err = store.Setup(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if b.Dialect == sqlfence.MySQL {
			b = harness.MySQL // verify.Check needs the driver's own connection
		}
		db := b.Fenced(t, dsn, sqlfence.WithTable("*", sqlfence.RowFence("fence_token")), sqlfence.WithTable("drafts", sqlfence.Exempt()),
			sqlfence.WithTable("hats", sqlfence.RowFence("mark")))
		for range 2 {
			if err := schema.AddFences(t.Context(), db); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]bool{"books": true, "pens": true, "drafts": false, "hats": false, "shelf": false,
			"fencing_tokens": false}
		switch b.Dialect {
		case sqlfence.Postgres:
			want["parts"], want["a_part"] = true, true
			for _, other := range []string{"seen", "elsewhere.books", "elsewhere.lamps", `elsewhere."Ink"`} {
				want[other] = false
			}
		case sqlfence.SQLite:
			want["area"], want["area_node"], want["area_parent"] = false, false, false
		case sqlfence.MySQL:
			want["parts"] = true
		}
		after := b.Raw(t, dsn) // an old connection of SQLite may still have the old columns
		for relation, has := range want {
			if got := hasFence(t, after, relation); got != has {
				t.Errorf("%s has a fence column: %v, want %v", relation, got, has)
			}
		}
		found, err := verify.Check(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.Code == "missing-column" && f.Table != "area" {
				t.Errorf("verify.Check says %v", f)
			}
		}
		token, err := store.Issue(t.Context(), "pens")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(sqlfence.WithFence(t.Context(), token), "INSERT INTO pens (id) VALUES (1)"); err != nil {
			t.Error(err)
		}
	})
}

// A pattern of a schema covers its tables, except tables that are registered or exempt with this schema. A table of the
// same name in another schema isn't exempt.
func TestAddFencesBySchema(t *testing.T) {
	harness.NeedPostgres(t)
	b := harness.Bases[0]
	dsn := b.DSN(t)
	plain := b.Raw(t, dsn)
	for _, query := range append([]string{"CREATE TABLE books (id integer)", "CREATE TABLE drafts (id integer)"},
		others[sqlfence.Postgres]...) {
		harness.MustExec(t, plain, query)
	}
	db := b.Fenced(t, dsn, sqlfence.WithTable("elsewhere.*", sqlfence.RowFence("fence_token")),
		sqlfence.WithTable("elsewhere.drafts", sqlfence.Exempt()))
	if err := schema.AddFences(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	for relation, has := range map[string]bool{"books": false, "drafts": false, "elsewhere.books": true,
		"elsewhere.lamps": true, `elsewhere."Ink"`: true, "elsewhere.drafts": false} {
		if got := hasFence(t, plain, relation); got != has {
			t.Errorf("%s has a fence column: %v, want %v", relation, got, has)
		}
	}
	all := b.Fenced(t, dsn, sqlfence.WithTable("*", sqlfence.RowFence("fence_token")),
		sqlfence.WithTable("elsewhere.drafts", sqlfence.Exempt()))
	if err := schema.AddFences(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if !hasFence(t, plain, "drafts") || hasFence(t, plain, "elsewhere.drafts") {
		t.Error("of two tables with one name the wrong one is exempt")
	}
}
