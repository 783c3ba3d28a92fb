package effects_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// A conditioned is a table with conditions that only some plans can evaluate, or that depend on when they are evaluated.
type conditioned struct {
	create     string // with rows
	changes    string // an assignment by which the test sees which rows were updated
	conditions []string
	before     string // a statement of the same session, whose count or number the conditions read
}

var conditioneds = map[sqlfence.Dialect][]conditioned{
	sqlfence.SQLite: {
		{`CREATE VIRTUAL TABLE books USING fts5(body, title, fence_token UNINDEXED);
			INSERT INTO books (rowid, body, title, fence_token) VALUES (1, 'hello world', 'a', 1), (2, 'bye', 'hello', 1), (3, 'hello', 'b', 1)`,
			"title = title || '!'", []string{
				"books MATCH 'hello'", "body MATCH 'hello'", "books = 'hello'", "'hello' = books",
				"books.books = 'hello'", "body = 'hello'", "books == 'hello'", "books IS 'hello'",
				"books IN ('hello')",
				"books MATCH 'hello' AND rowid = 1", "rowid = 1 AND books MATCH 'hello'", "books MATCH 'hello' AND rank < 0",
				"books MATCH 'hello' OR rowid = 2", "NOT books MATCH 'hello'",
				"books MATCH 'hello' AND bm25(books) < 0", "books LIKE 'hello'", "body LIKE 'hel%'",
				"body GLOB 'hel*'", "rank IS NULL", "bm25(books) < 0",
				"match('hello', books)", "match('hello', body)", `"books" = 'hello'`, "[books] = 'hello'",
				"(books) = 'hello'", "books = 'hello' AND rank MATCH 'bm25(10.0)'",
				"rowid IN (SELECT rowid FROM books WHERE books MATCH 'hello')", "EXISTS (SELECT 1 FROM books AS b WHERE b.books MATCH 'hello' AND b.rowid = books.rowid)",
				"rowid IN (SELECT rowid FROM books('hello'))",
				"rowid IN (SELECT rowid FROM books WHERE books = 'hello')", "books MATCH (SELECT 'hello')",
				"highlight(books, 0, '[', ']') LIKE '[%'", "snippet(books, 0, '[', ']', '', 5) LIKE '[%'",
				"rowid IN (SELECT value FROM json_each('[1,3]'))",
				"EXISTS (SELECT 1 FROM json_each('[1,3]') WHERE value = rowid)",
				"EXISTS (SELECT 1 FROM json_each('[1,3]') AS j WHERE j.value = books.rowid)",
				"rowid = (SELECT value FROM json_each WHERE json = '[1,3]')",
				"(rowid, title) = (1, 'a')", "(rowid, title) IN (VALUES (1, 'a'))", "rowid BETWEEN 1 AND 2",
				"random() IS NOT NULL", "changes() >= 0", "last_insert_rowid() >= 0",
				"last_insert_rowid() = rowid", "changes() = rowid", "total_changes() > 0",
			}, "INSERT INTO pens (id) VALUES (2), (3)"},
		{`CREATE VIRTUAL TABLE books USING fts4(body, title, fence_token, notindexed=fence_token);
			INSERT INTO books (docid, body, title, fence_token) VALUES (1, 'hello world', 'a', 1), (2, 'bye', 'hello', 1), (3, 'hello', 'b', 1)`,
			"title = title || '!'", []string{
				"books MATCH 'hello'", "body MATCH 'hello'", "books = 'hello'", "body = 'hello'",
				"books MATCH 'hello' AND docid = 1", "docid = 1 AND title MATCH 'a'",
				"books MATCH 'hello' OR docid = 2",
				"docid IN (SELECT docid FROM books WHERE books MATCH 'hello')", "docid > 1",
				"length(offsets(books)) > 0", "length(matchinfo(books)) > 0",
				"snippet(books) LIKE '%hello%'",
			}, ""},
		{`CREATE VIRTUAL TABLE books USING fts3(body, title, fence_token);
			INSERT INTO books (docid, body, title, fence_token) VALUES (1, 'hello world', 'a', 1), (2, 'bye', 'hello', 1), (3, 'hello', 'b', 1)`,
			"title = title || '!'", []string{"books MATCH 'hello'", "body MATCH 'hello'", "books = 'hello'",
				"docid IN (SELECT docid FROM books WHERE books MATCH 'hello')", "docid = 2"}, ""},
		{`CREATE VIRTUAL TABLE books USING rtree(id, x0, x1, +title, +fence_token INTEGER);
			INSERT INTO books (id, x0, x1, title, fence_token) VALUES (1, 0.1, 1.1, 'a', 1), (2, 5, 6, 'b', 1), (3, 16777217, 16777219, 'c', 1)`,
			"title = title || '!'", []string{"x0 >= 0.1", "x0 > 0.1", "x0 <= 0.1", "x0 = 0.1", "x0 >= 16777217",
				"x1 = 16777219", "x0 > '5'", "x0 < '5'", "x0 > NULL", "x0 < NULL", "x1 < 5 AND x0 > 0",
				"id = 2", "id = '2'", "id MATCH 2", "id IN (1, 3)", "x0 >= 5 OR id = 1", "x0 >= '5.0'",
				"x0 BETWEEN 0 AND 5", "x0 >= x'00'", "x0 IS 5"}, ""},
		{`CREATE VIRTUAL TABLE books USING geopoly(title, fence_token);
			INSERT INTO books (rowid, _shape, title, fence_token) VALUES (1, '[[0,0],[1,0],[0,1],[0,0]]', 'a', 1), (2, '[[5,5],[6,5],[5,6],[5,5]]', 'b', 1)`,
			"title = title || '!'", []string{"geopoly_overlap(_shape, '[[0,0],[2,0],[2,2],[0,2],[0,0]]')",
				"geopoly_within(_shape, '[[0,0],[2,0],[2,2],[0,2],[0,0]]')",
				"geopoly_contains_point(_shape, 0.2, 0.2)", "_shape MATCH 'x'", "rowid = 1"}, ""},
		{`CREATE TABLE books (id integer PRIMARY KEY, title text, n int, fence_token bigint);
			INSERT INTO books (id, title, n, fence_token) VALUES (1, 'a', 3, 1), (2, 'b', NULL, 1), (3, 'c', 1, 1)`,
			"title = title || '!'", []string{"changes() = id", "changes() = 2", "last_insert_rowid() = id",
				"n = changes()", "(id, n) > (1, 1)", "(id, n) IS (1, 3)", "(n IS NULL) = 1",
				"id IN (SELECT value FROM generate_series(1, 2))", "random() % 2 IN (0, 1, -1)",
				"title MATCH 'a'", "title REGEXP 'a'", "id = (SELECT max(id) FROM books)", "likely(id = 1)",
				"iif(id = 1, 1, 0)", "id", "n", "'1'", "title COLLATE NOCASE = 'A'",
				"id IN (SELECT id FROM books ORDER BY n LIMIT 1)",
				"exists (SELECT 1 FROM books b WHERE b.n = books.id)", "id NOT IN (SELECT n FROM books)",
				"id = 1 AND n", "0.5", "'x'", "NULL", "json_valid(title) OR id = 1", "sqlite_version() > '3'",
				"rowid = 2"}, "INSERT INTO pens (id) VALUES (2), (3)"},
	},
	sqlfence.MySQL: {
		{"CREATE TABLE books (id integer PRIMARY KEY, title varchar(50), body text, n int, fence_token bigint, FULLTEXT (body), FULLTEXT (title, body)) ENGINE=InnoDB;INSERT INTO books (id, title, body, n, fence_token) VALUES (1, 'a', 'hello world', 3, 1), (2, 'hello', 'bye', NULL, 1), (3, 'c', 'hello', 1, 1); CREATE SEQUENCE s",
			"title = CONCAT(title, '!')", []string{"MATCH (body) AGAINST ('hello')",
				"MATCH (body) AGAINST ('hello') > 0", "MATCH (body) AGAINST ('hello') AND id = 1",
				"MATCH (title, body) AGAINST ('+hello' IN BOOLEAN MODE)",
				"MATCH (body) AGAINST ('hello') OR n IS NULL",
				"MATCH (body) AGAINST ('hello') AND n IS NOT NULL",
				"MATCH (body) AGAINST ('hello' WITH QUERY EXPANSION)",
				"@n := id", "(@n := COALESCE(@n, 0) + 1) <= 2", "@n = 2 AND id > 0", "ROW_COUNT() = 2",
				"FOUND_ROWS() = 2", "NAME_CONST('x', 2) = id", "(id, n) = (1, 3)",
				"(id, n) IN ((1, 3), (3, 1))", "(id, n) > (1, 1)", "RAND() < 2", "UUID() IS NOT NULL",
				"id = SLEEP(0) + 1", "BENCHMARK(1, 1) = 0",
				"id IN (SELECT n FROM (SELECT n FROM books) AS x)", "n <=> NULL", "id", "n", "'x'", "'1x'",
				"NULL", "title = 'A'", "CONNECTION_ID() > 0", "@@last_insert_id >= 0", "@@identity >= 0",
				"@@warning_count = 0", "@@error_count = 0", "@@insert_id >= 0",
				"id IN (SELECT seq FROM seq_1_to_2)", "(id, n) <=> (2, NULL)", "ROW(id, n) = ROW(1, 3)",
				"id DIV 0 IS NULL", "CAST(title AS SIGNED) = 0", "@n := @n + 1 OR TRUE",
				"COALESCE(@@timestamp, 0) > 0"}, "INSERT INTO pens (id) VALUES (2), (3)"},
	},
	sqlfence.Postgres: {
		{"CREATE TABLE books (id integer PRIMARY KEY, title text, n int, fence_token bigint); INSERT INTO books (id, title, n, fence_token) VALUES (1, 'a', 3, 1), (2, 'b', NULL, 1), (3, 'c', 1, 1); CREATE SEQUENCE s; CREATE INDEX ON books USING gin (to_tsvector('simple', title))",
			"title = title || '!'", []string{"to_tsvector('simple', title) @@ to_tsquery('simple', 'a')",
				"title ~ 'a'", "id = ANY ('{1,2}')", "id IN (SELECT generate_series(1, 2))",
				"id = (SELECT generate_series(1, 1))", "generate_series(1, 2) = id", "(id, n) = (1, 3)",
				"(id, n) > (1, 1)", "(id, n) IS DISTINCT FROM (1, 3)", "ROW(id, n) IN (SELECT 1, 3)",
				"books = (1, 'a', 3, 1)::books", "books IS NOT NULL", "books.* IS NOT NULL", "random() < 2",
				"n IS NULL", "id", "NULL", "true", "count(*) > 0", "row_number() OVER () = 1", "ctid = '(0,1)'",
				"ctid IN (SELECT ctid FROM books LIMIT 1)", "tableoid = 'books'::regclass", "xmin::text <> ''",
				"clock_timestamp() > now()", "set_config('app.x', id::text, true) = '2'",
				"current_setting('app.x', true) IS NULL", "txid_current_if_assigned() IS NULL", "lastval() = 1",
				"title SIMILAR TO 'a'", "id = SOME (ARRAY[1, 2])",
				"exists (SELECT 1 FROM books b WHERE b.n = books.id)", "id NOT IN (SELECT n FROM books)",
				"id <> ALL (SELECT n FROM books)", "title COLLATE \"C\" = 'a'", "id = 1 OR n / 0 = 1",
				"CASE WHEN id = 1 THEN true END",
				"(SELECT count(*) FROM books) = 3"}, "INSERT INTO pens (id) VALUES (2), (3)"},
	},
}

var conditionRules = map[string][]sqlfence.Rule{
	"row": {sqlfence.RowFence("fence_token")}, "ledger": {sqlfence.Ledger()},
	"both": {sqlfence.RowFence("fence_token"), sqlfence.Ledger()},
}

// A condition selects the same rows in a guarded statement as in the bare one, or the statement is refused, and the
// error says what to write instead.
func TestConditionsReachTheSameRows(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		refused, run := 0, 0
		for _, c := range conditioneds[b.Dialect] {
			dsn := b.DSN(t)
			plain := b.Raw(t, dsn)
			for _, text := range strings.Split("CREATE TABLE pens (id integer PRIMARY KEY, price int);CREATE TABLE fencing_tokens (name varchar(190) NOT NULL PRIMARY KEY, token bigint NOT NULL);INSERT INTO fencing_tokens VALUES ('books', 5);"+c.create, ";") {
				if _, err := plain.Exec(text); err != nil && !strings.Contains(err.Error(), "no such") { // module
					t.Errorf("%s: %v", text, err)
				}
			}
			if b.AsksByFunction() {
				harness.MustExec(t, plain, tokens.LedgerFunction())
			}
			for name, rules := range conditionRules {
				fenced := b.Fenced(t, dsn, harness.Books(rules...))
				for _, condition := range c.conditions {
					for _, verb := range []string{"DELETE FROM books", "UPDATE books SET " + c.changes} {
						query := verb + " WHERE " + condition
						want, wantErr := c.reached(t.Context(), t, plain, query)
						got, err := c.reached(harness.Holding(t, 5), t, fenced, query)
						var no *sqlfence.UnguardableError
						switch {
						case errors.As(err, &no):
							refused++
						case (err != nil) != (wantErr != nil) || got != want:
							t.Errorf("%s by %s:\nbare   %s %v\nfenced %s %v", query, name, want, wantErr, got, err)
						}
						if wantErr == nil {
							run++
						}
					}
				}
			}
		}
		if t.Logf("%d conditions, %d of them refused", run, refused); run == 0 || refused*5 > run {
			t.Error("too few run to show anything")
		}
	})
}

// reached returns the rows after a statement, and the number of rows that the driver reports.
func (c *conditioned) reached(ctx context.Context, t *testing.T, db *sql.DB, query string) (string, error) {
	t.Helper()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if c.before != "" {
		if _, err := tx.ExecContext(ctx, c.before); err != nil {
			t.Fatal(err)
		}
	}
	n, err := harness.Affected(tx.ExecContext(ctx, query))
	if err != nil {
		return "", err
	}
	all := fmt.Sprint(n, " affected, left")
	rows, err := tx.QueryContext(ctx, "SELECT title FROM books ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var title string
		if err := rows.Scan(&title); err != nil {
			t.Fatal(err)
		}
		all += " " + title
	}
	return all, rows.Err()
}

// The advice in each refusal works as written. A statement that only reads or references a registered table passes.
func TestAdviceOfRefusalsWorks(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, a := range advices[b.Dialect] {
			dsn := b.DSN(t)
			plain := b.Raw(t, dsn)
			create := []string{"CREATE TABLE fencing_tokens (name varchar(190) NOT NULL PRIMARY KEY, token bigint NOT NULL)",
				"INSERT INTO fencing_tokens VALUES ('books', 5)"}
			if b.AsksByFunction() {
				create = append(create, tokens.LedgerFunction())
			}
			absent := false
			for _, text := range append(create, a.create...) {
				if _, err := plain.Exec(text); err != nil && strings.Contains(err.Error(), "no such module") {
					absent = true
				} else if err != nil && !absent {
					t.Fatalf("%s: %v", text, err)
				}
			}
			if absent {
				continue
			}
			db := b.Fenced(t, dsn, harness.Books(a.rules...))
			if a.refused != "" {
				_, err := db.ExecContext(harness.Holding(t, 5), a.refused)
				if err == nil || !strings.Contains(err.Error(), a.says) {
					t.Errorf("%s: %v, want an error with %q", a.refused, err, a.says)
				}
			}
			for _, text := range a.instead {
				rows, err := db.QueryContext(harness.Holding(t, 5), text)
				if _, err := harness.Returned(rows, err); err != nil {
					t.Errorf("%s: %v", text, err)
				}
			}
		}
	})
}

// An advice is a statement that a rule refuses, with the error's text, and with what the error says to write instead.
type advice struct {
	create        []string
	rules         []sqlfence.Rule
	refused, says string
	instead       []string
}

var (
	rowFence   = []sqlfence.Rule{sqlfence.RowFence("fence_token")}
	plainBooks = "CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token bigint)"
)

var advices = map[sqlfence.Dialect][]advice{
	sqlfence.SQLite: {
		{[]string{"CREATE VIRTUAL TABLE books USING fts5(body, fence_token UNINDEXED)"}, rowFence,
			"DELETE FROM books WHERE books MATCH 'hello'", "rowid IN (SELECT rowid",
			[]string{"DELETE FROM books WHERE rowid IN (SELECT rowid FROM books WHERE books MATCH 'hello')"}},
		{[]string{"CREATE VIRTUAL TABLE books USING fts5(body)"}, rowFence,
			"UPDATE books SET body = 'x'", "it is a virtual table", nil},
		{[]string{"CREATE TABLE pens (id integer)", "CREATE VIEW books AS SELECT id FROM pens",
			"CREATE TRIGGER t INSTEAD OF UPDATE ON books BEGIN UPDATE pens SET id = NEW.id; END"}, rowFence,
			"UPDATE books SET id = 1", "register those", nil},
		{[]string{plainBooks, "CREATE TABLE pens (id integer)"}, rowFence, "", "",
			[]string{"ALTER TABLE pens ADD COLUMN book integer REFERENCES books (id)"}},
	},
	sqlfence.MySQL: {
		{[]string{plainBooks}, []sqlfence.Rule{sqlfence.Ledger()}, "UPDATE books SET price = FOUND_ROWS()",
			"SELECT FOUND_ROWS() before", []string{"SELECT FOUND_ROWS()", "UPDATE books SET price = 3"}},
		{[]string{plainBooks + " WITH SYSTEM VERSIONING"}, rowFence, "DELETE HISTORY FROM books", "DELETE HISTORY", nil},
		{[]string{plainBooks + " WITH SYSTEM VERSIONING"}, []sqlfence.Rule{sqlfence.Ledger()}, "", "",
			[]string{"INSERT INTO books (id, price) SELECT id + 9, price FROM books FOR SYSTEM_TIME ALL WHERE id > 0"}},
		{[]string{"CREATE TABLE books (id integer, a date, b date, fence_token bigint, PERIOD FOR p (a, b))"}, rowFence,
			"UPDATE books FOR PORTION OF p FROM '2000-01-01' TO '2001-01-01' SET id = 1", "FOR PORTION OF", nil},
		{[]string{plainBooks}, rowFence, "SET STATEMENT max_statement_time = 1 FOR UPDATE books SET price = 1",
			"set the variable for the session", []string{"SET max_statement_time = 1", "UPDATE books SET price = 1",
				"SET STATEMENT max_statement_time = 1 FOR SELECT * FROM books",
				"SELECT /*!40001 SQL_NO_CACHE */ * FROM books"}},
		{[]string{plainBooks, "CREATE TABLE pens (id integer)"}, rowFence, "", "",
			[]string{"ALTER TABLE pens ADD FOREIGN KEY (id) REFERENCES books (id)"}},
	},
	sqlfence.Postgres: {
		{[]string{plainBooks}, rowFence, "COPY books (id, price) FROM STDIN", "unnest($1::bigint[])",
			[]string{"INSERT INTO books (id, price) SELECT unnest('{1,2}'::bigint[]), unnest('{3,4}'::bigint[])"}},
		{[]string{plainBooks}, rowFence, "PREPARE p AS UPDATE books SET price = 1", "behind PREPARE",
			[]string{"PREPARE p AS SELECT * FROM books", "EXECUTE p", "UPDATE books SET price = 1"}},
		{[]string{plainBooks, "CREATE TABLE pens (id integer)"}, rowFence, "", "",
			[]string{"ALTER TABLE pens ADD FOREIGN KEY (id) REFERENCES books"}},
		{[]string{strings.Replace(plainBooks, "bigint", "text", 1)}, rowFence, "DELETE FROM books",
			`"fence_token" is of type text`, nil},
		{[]string{strings.Replace(plainBooks, "bigint", "uuid", 1)}, rowFence, "INSERT INTO books (id) VALUES (1)",
			`"fence_token" is of type uuid`, nil},
		{[]string{strings.Replace(plainBooks, "bigint", "jsonb", 1)}, rowFence, "UPDATE books SET price = 1",
			`"fence_token" is of type jsonb`, nil},
	},
}
