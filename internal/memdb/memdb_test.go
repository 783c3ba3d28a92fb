package memdb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence/internal/memdb"
)

// open opens a new database with a table of two pens.
func open(t *testing.T) *sql.DB {
	t.Helper()
	db := sql.OpenDB(memdb.New().Connector(memdb.Full))
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	exec(t, db, "CREATE TABLE pens (id integer PRIMARY KEY, colour varchar(10) UNIQUE, price decimal(10,2) NOT NULL DEFAULT 1.5)")
	exec(t, db, "INSERT INTO pens (id, colour) VALUES (1, 'red'), (2, 'blue')")
	return db
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func exec(t *testing.T, db execer, query string) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// rows returns what a query returns, as text.
func rows(t *testing.T, db *sql.DB, query string, args ...any) string {
	t.Helper()
	r, err := db.Query(query, args...)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	columns, err := r.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for r.Next() {
		values, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := r.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintln(values...)))
	}
	if r.Err() != nil {
		lines = append(lines, r.Err().Error())
	}
	return strings.Join(lines, "; ")
}

func TestExpressions(t *testing.T) {
	db := open(t)
	for expr, want := range map[string]string{
		"1 + 2 * 3": "7", "(1 + 2) * 3": "9", "-2 - -3": "1", "7 / 2": "3", "7 / 2.0": "3.5", "1 / 0": "division by zero",
		"1 < 2 AND 2 <= 2": "1", "1 > 2 OR 2 >= 3": "0", "1 <> 1": "0", "1 != 2": "1", "NOT 1": "0", "NOT NULL": "<nil>",
		"NULL AND 0": "0", "NULL AND 1": "<nil>", "0 AND json_extract('{}', 'x')": "0", "1 AND 2": "2",
		"NULL = NULL": "<nil>", "NULL IS NULL": "1", "1 IS NOT NULL": "1", "2 BETWEEN 1 AND 3": "1", "4 BETWEEN 1 AND 3": "0",
		"'a' || 1 || 'b'": "a1b", "'it''s'": "it's", "'a' < 'b'": "1", "1 < 'a'": "1",
		"CASE WHEN 0 THEN 1 WHEN 1 THEN 2 ELSE 3 END": "2", "CASE 'b' WHEN 'a' THEN 1 ELSE 3 END": "3", "CASE WHEN NULL THEN 1 END": "<nil>",
		"COALESCE(NULL, 2, json_extract('{}', 'x'))": "2", "json_extract('{}', 'x')": "bad JSON path: 'x'",
		"CAST('7' AS INTEGER) + CAST(1.9 AS INTEGER)": "8", "CAST(7 AS TEXT) || ''": "7", "CAST(NULL AS TEXT)": "<nil>",
		"lower('ABC')": "abc", "round(2.5)": "3", "length('aé')": "2", "substr('aéb', 1, 2)": "aé", "substr('ab', 2, 9)": "b", "julianday('now') > 2440587.5": "1", "max(1, 3, 2)": "3", "max(1, NULL)": "<nil>", "abs(-7)": "7", "abs(7)": "7", "abs(NULL)": "<nil>", "abs(-9223372036854775807 - 1)": "integer overflow", "(SELECT colour FROM pens WHERE id = 2)": "blue",
		"(SELECT id FROM pens WHERE id = 3)": "<nil>", "(SELECT count(*) FROM pens)": "2", "nofunction(1)": "no such function: nofunction",
		"nothing": "no such column: nothing", "(SELECT 1 FROM nowhere)": "no such table: nowhere", "1 +": "incomplete input", "1 )": `near ")": syntax error`,
		"'unfinished": "unfinished quotes",
	} {
		if got := rows(t, db, "SELECT "+expr); got != want {
			t.Errorf("%s: %s, want %s", expr, got, want)
		}
	}
}

func TestStatements(t *testing.T) {
	db := open(t)
	for _, step := range []struct{ query, want string }{
		{"SELECT * FROM pens ORDER BY colour", "2 blue 1.5; 1 red 1.5"},
		{"SELECT p.id, count(*) OVER () AS n FROM pens p WHERE id > 1", "2 1"},
		{"SELECT a.id, b.id FROM pens a, pens b WHERE a.id < b.id", "1 2"},
		{"SELECT a.id, b.id FROM pens a LEFT JOIN pens AS b ON b.id = a.id + 1 ORDER BY a.id", "1 2; 2 <nil>"},
		{"SELECT a.id FROM pens a LEFT JOIN pens b ON b.id = 0, pens c WHERE b.id IS NULL AND c.id = a.id ORDER BY a.id", "1; 2"},
		{"SELECT 1 / (id - 2) FROM pens ORDER BY id", "-1; division by zero"},
		{"INSERT INTO pens (colour) VALUES ('green') RETURNING id, price * 2", "3 3"},
		{"INSERT INTO pens (id, colour) VALUES (3, 'black')", "UNIQUE constraint failed: pens.id"},
		{"INSERT INTO pens (id, price) VALUES (4, NULL)", "NOT NULL constraint failed: pens.price"},
		{"INSERT INTO pens (id) VALUES (4, 5)", "2 values for 1 columns"},
		{"INSERT INTO pens (id, colour) VALUES (3, 'x') ON CONFLICT (id) DO NOTHING", ""},
		{"INSERT INTO pens (id, price) VALUES (3, 7) ON CONFLICT (id) DO UPDATE SET price = pens.price + excluded.price WHERE pens.id > 2 RETURNING price", "8.5"},
		{"INSERT INTO pens SELECT id + 10, colour || '2', price FROM pens WHERE id = 1 RETURNING *", "11 red2 1.5"},
		{"UPDATE pens SET colour = 'red' WHERE id > 1", "UNIQUE constraint failed: pens.colour"},
		{"UPDATE pens SET price = 1 / (id - 2)", "division by zero"},
		{"UPDATE pens SET price = new.price + id FROM (SELECT 7 AS price) AS new WHERE id = 11 RETURNING pens.price", "18"},
		{"UPDATE pens SET price = 1 FROM pens AS other", "UPDATE from 4 rows, want one"},
		{"DELETE FROM pens WHERE id > 2 RETURNING id", "3; 11"},
		{"SELECT * FROM pens ORDER BY id", "1 red 1.5; 2 blue 1.5"},
		{"SELECT name, type, pk FROM pragma_table_info('pens')", "id integer 1; colour varchar 0; price decimal 0"},
		{`SELECT value FROM json_each('["a","b"]') WHERE true`, "a; b"},
		{"ALTER TABLE pens ADD COLUMN ink bigint", ""},
		{"SELECT ink FROM pens WHERE id = 1", "<nil>"},
		{"CREATE TABLE pens (id integer)", "table pens already exists"},
		{"CREATE TABLE IF NOT EXISTS pens (id integer)", ""},
		{"CREATE INDEX IF NOT EXISTS pens_colour ON pens (colour)", ""},
		{"CREATE INDEX IF NOT EXISTS pens_colour ON pens (colour)", ""},
		{"SELECT name FROM pragma_index_list('pens')", "pens_colour"},
		{"CREATE INDEX IF NOT EXISTS pens_size ON pens (size)", "no such column: size"},
		{"EXPLAIN DELETE FROM pens", ""},
		{"EXPLAIN DELETE FROM nowhere", "no such table: nowhere"},
		{"EXPLAIN INSERT INTO pens SELECT * FROM nowhere", "no such table: nowhere"},
		{"DROP TABLE pens", ""},
		{"SELECT 1 FROM pens", "no such table: pens"},
		{"SELEC 1", `near "SELEC": syntax error`},
		{"/* nothing */ ; -- nothing", ""},
	} {
		if got := rows(t, db, step.query); got != step.want {
			t.Errorf("%s: %s, want %s", step.query, got, step.want)
		}
	}
}

func TestPlaceholdersAreBound(t *testing.T) {
	db := open(t)
	for _, test := range []struct {
		query string
		args  []any
		want  string
	}{
		{"SELECT ?, ?", []any{1, 2}, "1 2"},
		{"SELECT ?2, ?1, ?2", []any{1, 2}, "2 1 2"},
		{"SELECT :a, @b, :a", []any{sql.Named("b", 2), sql.Named("a", 1)}, "1 2 1"},
		{"SELECT :a", []any{1}, "1"},
		{"SELECT :a", []any{sql.Named("b", 1)}, "missing argument :a"},
		{"SELECT ?", []any{1, 2}, "wrong number of arguments"},
		{"SELECT ?", nil, "wrong number of arguments"},
	} {
		if got := rows(t, db, test.query, test.args...); got != test.want {
			t.Errorf("%s with %v: %s, want %s", test.query, test.args, got, test.want)
		}
	}
}

// Writers wait for each other, and nobody sees what isn't committed.
func TestTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		ctx := t.Context()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, tx, "UPDATE pens SET price = 2 WHERE id = 1")
		if got := rows(t, db, "SELECT price FROM pens ORDER BY id"); got != "1.5; 1.5" {
			t.Errorf("others see %s", got)
		}
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if _, err := db.ExecContext(limited, "UPDATE pens SET price = 3"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second writer: %v, want it to wait", err)
		}
		done := make(chan error)
		go func() {
			_, err := db.ExecContext(ctx, "UPDATE pens SET price = price + 10")
			done <- err
		}()
		synctest.Wait()
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := rows(t, db, "SELECT price FROM pens ORDER BY id"); got != "12; 11.5" {
			t.Errorf("after both: %s", got)
		}

		if tx, err = db.BeginTx(ctx, nil); err != nil {
			t.Fatal(err)
		}
		exec(t, tx, "DELETE FROM pens")
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		if got := rows(t, db, "SELECT count(*) FROM pens"); got != "2" {
			t.Errorf("after a rollback: %s", got)
		}
		if _, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSnapshot}); err == nil {
			t.Error("a level that it doesn't know is accepted")
		}
		if tx, err = db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM pens"); err == nil {
			t.Error("a read-only transaction writes")
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	})
}

// A statement that takes long ends with its context.
func TestSlowStatements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		const slow = "(WITH RECURSIVE c(n) AS (SELECT 1) SELECT count(*) FROM c)"
		start := time.Now()
		if got := rows(t, db, "SELECT "+slow); got != "1" || time.Since(start) < time.Second {
			t.Errorf("%s after %v", got, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := db.ExecContext(ctx, "UPDATE pens SET price = 9 WHERE "+slow+" > 0"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if got := rows(t, db, "SELECT price FROM pens"); got != "1.5; 1.5" {
			t.Errorf("left %s", got)
		}
	})
}
