package keys_test

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// In PostgreSQL the guard checks the keys of new rows after they are stored, if the statement doesn't show the keys.

// storedRows insert the row 7 in ways that don't show its key.
var storedRows = []harness.Write{
	{Name: "expression", Query: "INSERT INTO books (isbn, id) VALUES ($1, 3 + 4)", Args: []any{"i7"}},
	{Name: "subquery", Query: "INSERT INTO books (isbn, id) VALUES ($1, (SELECT max(id) + 4 FROM books))", Args: []any{"i7"}},
	{Name: "column", Query: "INSERT INTO books (isbn, id) SELECT 'i7', id + 6 FROM books WHERE id = $1", Args: []any{1}},
	{Name: "all columns", Query: "INSERT INTO books (id, isbn, price) SELECT *, 10 FROM (SELECT id + 6, 'i7' FROM books WHERE id = $1) AS b", Args: []any{1}},
	{Name: "unnest", Query: "INSERT INTO books (isbn, id) SELECT 'i7', unnest(ARRAY[7]) WHERE 1 = $1", Args: []any{1}},
	{Name: "volatile", Query: "INSERT INTO books (isbn, id) SELECT 'i7', n FROM (SELECT 7 + floor(random())::int AS n) AS b WHERE 1 = $1", Args: []any{1}},
	{Name: "do nothing", Query: "INSERT INTO books (isbn, id) SELECT 'i' || n, n FROM (SELECT id + 6 AS n FROM books WHERE id < $1) AS b ON CONFLICT DO NOTHING", Args: []any{2}},
	{Name: "upsert", Query: "INSERT INTO books (isbn, id) SELECT 'i7', id + 6 FROM books WHERE id = $1 ON CONFLICT (isbn) DO UPDATE SET id = excluded.id", Args: []any{1}},
	{Name: "with", Query: "WITH x AS (SELECT 7 AS id) INSERT INTO books (isbn, id) SELECT $1, id FROM x", Args: []any{"i7"}},
	{Name: "in with", Query: "WITH x AS (INSERT INTO books (isbn, id) SELECT 'i7', id + 6 FROM books WHERE id = $1), y AS (SELECT 1) SELECT * FROM y", Args: []any{1}},
}

func eachStored(t *testing.T, test func(t *testing.T, sh *harness.Shop, fence string, form harness.Form, w harness.Write)) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("SQLite's drivers don't count the rows of a statement that returns some; MySQL returns none")
		}
		for _, fence := range harness.Fences {
			sh := harness.Setting{Base: b}.Shop(t, fence.Rule, sqlfence.Key("id"))
			for _, form := range harness.Forms[:3] {
				for _, w := range storedRows {
					t.Run(fence.Name+"/"+form.Name+"/"+w.Name, func(t *testing.T) {
						resetKeys(t, sh, 5)
						test(t, sh, fence.Name, form, w)
					})
				}
			}
		}
	})
}

func TestKeyIsCheckedAsItIsStored(t *testing.T) {
	eachStored(t, func(t *testing.T, sh *harness.Shop, fence string, form harness.Form, w harness.Write) {
		n, err := form.Run(harness.HoldingKeys(t, 7, 5), sh.DB, w)
		if err != nil || n != 1 && w.Name != "in with" {
			t.Errorf("%d rows, %v", n, err)
		}
		want := "1:10@5 2:10@5 3:10@5 7:10@5"
		if fence == "ledger" {
			want = "1:10@5 2:10@5 3:10@5 7:10@0"
		}
		if got := sh.State(t, true); got != want {
			t.Errorf("left %s, want %s", got, want)
		}
	})
}

func TestKeyThatIsStoredIsOutOfScope(t *testing.T) {
	eachStored(t, func(t *testing.T, sh *harness.Shop, fence string, form harness.Form, w harness.Write) {
		unchanged := sh.Unchanged(t)
		_, err := form.Run(harness.HoldingKeys(t, 8, 5), sh.DB, w)
		harness.WantError(t, err, sqlfence.ErrOutOfScope)
		_, err = form.Run(harness.HoldingKeys(t, 7, 5, 8, 5), sh.DB, w)
		harness.WantError(t, err, sqlfence.ErrUnguardable)
		_, err = form.Run(t.Context(), sh.DB, w)
		harness.WantError(t, err, sqlfence.ErrNoFence)
		if fence == "ledger" {
			_, err = form.Run(harness.HoldingKeys(t, 7, 4), sh.DB, w)
			harness.WantError(t, err, sqlfence.ErrStale)
		}
		unchanged()
	})
}

// If a trigger changes the key of a new row, the guard compares the changed key.
func TestKeyThatATriggerStores(t *testing.T) {
	eachStored(t, func(t *testing.T, sh *harness.Shop, _ string, form harness.Form, w harness.Write) {
		sh.Exec(t, "CREATE OR REPLACE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := 8; RETURN NEW; END $$")
		sh.Exec(t, "DROP TRIGGER IF EXISTS other ON books")
		sh.Exec(t, "CREATE TRIGGER other BEFORE INSERT ON books FOR EACH ROW WHEN (NEW.id = 7) EXECUTE FUNCTION other()")
		unchanged := sh.Unchanged(t)
		_, err := form.Run(harness.HoldingKeys(t, 7, 5), sh.DB, w)
		harness.WantError(t, err, sqlfence.ErrOutOfScope)
		unchanged()
		if _, err := form.Run(harness.HoldingKeys(t, 8, 5), sh.DB, w); err != nil {
			t.Error(err)
		}
	})
}

// A query would return the rows by which the guard checks the keys.
func TestKeyThatAQueryStores(t *testing.T) {
	eachStored(t, func(t *testing.T, sh *harness.Shop, _ string, _ harness.Form, w harness.Write) {
		unchanged := sh.Unchanged(t)
		if explained, err := sh.DB.QueryContext(harness.HoldingKeys(t, 8, 5), "EXPLAIN ANALYZE "+w.Query, w.Args...); err != nil {
			harness.WantError(t, err, sqlfence.ErrOutOfScope)
		} else {
			for explained.Next() {
			}
			harness.WantError(t, errors.Join(explained.Err(), explained.Close()), sqlfence.ErrOutOfScope)
		}
		unchanged()
		rows, err := sh.DB.QueryContext(harness.HoldingKeys(t, 7, 5), w.Query, w.Args...)
		if w.Name != "in with" {
			harness.WantError(t, err, sqlfence.ErrUnguardable)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err = errors.Join(err, rows.Close()); err != nil || len(columns) != 1 {
			t.Errorf("columns %q, %v", columns, err)
		}
	})
}

// A constant in a query with groups may be NULL in some rows.
func TestKeyThatIsNull(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("it has no GROUPING SETS")
		}
		for _, fence := range harness.Fences {
			sh := harness.Setting{Base: b}.Shop(t, fence.Rule, sqlfence.Key("isbn"))
			resetKeys(t, sh, 5)
			unchanged := sh.Unchanged(t)
			for _, by := range []string{"ROLLUP (1)", "CUBE (1)", "GROUPING SETS ((1), ())"} {
				for _, query := range []string{
					"INSERT INTO books (isbn, id) SELECT '7', 20 FROM pens GROUP BY " + by,
					"INSERT INTO books (isbn, id) SELECT '7', 21 FROM pens UNION ALL SELECT '7', 20 FROM pens GROUP BY " + by,
				} {
					_, err := sh.DB.ExecContext(harness.HoldingKeys(t, 7, 5), query)
					harness.WantError(t, err, sqlfence.ErrOutOfScope)
				}
			}
			unchanged()
		}
	})
}

// In Observe mode a token isn't stored in rows of other keys.
func TestKeyThatIsObserved(t *testing.T) {
	eachStored(t, func(t *testing.T, sh *harness.Shop, fence string, form harness.Form, w harness.Write) {
		if fence == "ledger" {
			return
		}
		db := sh.Fenced(t, sh.Source, sqlfence.WithMode(sqlfence.Observe), harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Key("id")))
		if _, err := form.Run(harness.HoldingKeys(t, 8, 5), db, w); err != nil {
			t.Fatal(err)
		}
		if got, want := sh.State(t, true), "1:10@5 2:10@5 3:10@5 7:10@0"; got != want {
			t.Errorf("left %s, want %s", got, want)
		}
	})
}

// A star may stand for several columns, or for none. Then a value's place doesn't show whether it is the key.
func TestKeyBehindAStar(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("it has no tables or values without columns")
		}
		for _, fence := range harness.Fences {
			for _, rules := range [][]sqlfence.Rule{{fence.Rule, sqlfence.Key("id")}, {fence.Rule, sqlfence.Key("id"), sqlfence.UnfencedInserts()}} {
				sh := harness.Setting{Base: b}.Shop(t, rules...)
				sh.Exec(t, "CREATE TYPE pair AS (isbn text, id int)")
				sh.Exec(t, "CREATE TYPE nothing AS ()")
				for _, query := range []string{
					"INSERT INTO books (isbn, id, price) SELECT a.* AS x, 7, b.* FROM (VALUES ('x', 9)) AS a, (SELECT) AS b",
					"INSERT INTO books (isbn, id, price) SELECT a.* x, 7, b.* FROM (VALUES ('x', 9)) AS a, (SELECT) AS b",
					"INSERT INTO books (isbn, id, price) SELECT (a.*), 7, b.* FROM (VALUES ('x', 9)) AS a, (SELECT) AS b",
					"INSERT INTO books (isbn, id, price) VALUES ((ROW('x', 9)::pair).*, 7, (ROW()::nothing).*)",
					"MERGE INTO books USING ((VALUES ('x', 9)) AS a CROSS JOIN (SELECT) AS b) ON false WHEN NOT MATCHED THEN INSERT (isbn, id, price) VALUES (a.*, 7, b.*)",
				} {
					resetKeys(t, sh, 5)
					_, err := sh.DB.ExecContext(harness.HoldingKeys(t, 7, 5), query)
					if err == nil && len(rules) == 2 {
						t.Errorf("%s passed", query)
					}
					var marked int
					if err := sh.Plain.QueryRowContext(t.Context(), "SELECT count(*) FROM books WHERE id = 9 AND fence_token > 0").Scan(&marked); err != nil || marked > 0 {
						t.Errorf("%s marked %d rows of another key: %v", query, marked, err)
					}
				}
			}
		}
	})
}
