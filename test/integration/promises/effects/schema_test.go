package effects_test

import (
	"regexp"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// The schema has the tables that the statements of the corpus name. If a new statement needs another column, add the
// column here. If it needs a column with another type, or a table of that type, add a preparation below.

// The rows have the stored token 9. The ledger has the fresh token.
const oldMark, freshToken, staleToken = "9", 12, 5

// effectTables are read before and after a statement that names them.
var effectTables = []string{"books", "orders", "other", "books_log"}

var effectSchema = map[sqlfence.Dialect]string{
	sqlfence.Postgres: `
CREATE TYPE pt AS (x int, y int);
CREATE TABLE books (id int PRIMARY KEY DEFAULT 1000, isbn text UNIQUE, price int DEFAULT 10, title text DEFAULT 'none',
	stock int DEFAULT 5, tags text[], point pt, old int, x int, y int, a int, b int, c int, d int,
	"a$b" int, "c$$d" int, "e$$f" int, "where" int, "returning" int, "from" int, "limit" int, "set" int, "key" int,
	"end" int, "as" int, "and" int, "order" int, changed bool, sold date, live bool DEFAULT true, doc jsonb, shelf text, note text, serial bigint DEFAULT 1, attempt bigint DEFAULT 1, editedby int,
	fence_token bigint);
CREATE TABLE orders (id int PRIMARY KEY DEFAULT 1000, book int, price int DEFAULT 3, total int DEFAULT 0, fence_token bigint);
CREATE TABLE other (id int DEFAULT 1, title text, price int, books text, a int, serial int, "set" int);
CREATE TABLE old (id int, price int, title text, "from" int, "where" int, "offset" int);
CREATE TABLE older (id int);
CREATE TABLE prices (book int, price int, old bool);
CREATE TABLE sold (book int, n int);
CREATE TABLE src (id int, price int, title text, x int, parent int);
CREATE TABLE x (id int, price int);
CREATE TABLE pens (x int);
CREATE TABLE shops (id int PRIMARY KEY);
CREATE TABLE books_log (id int DEFAULT 7, note text DEFAULT 'n');
CREATE TABLE books2 (price int, note text);
CREATE TABLE "Books" (price int);
CREATE TABLE books$ (price int);
CREATE TABLE booksé (price int);
CREATE FUNCTION f(int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 > 0';
CREATE FUNCTION f(text) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 <> ''''';
CREATE FUNCTION f(bool) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE FUNCTION f(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + $2';
CREATE FUNCTION do_something(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1';
INSERT INTO books (id, isbn, title, tags, point, old, x, y, a, b, c, d, "a$b", "c$$d", "e$$f", "where", "returning", "from", "limit", "set", "key", "end", "as", "and", "order", sold, doc, fence_token)
	SELECT id, 'i' || id, 'title ' || id % 3, '{p,q}', (1, 2)::pt, 1, id, 2, id, 2, 7, 7, 1, 2, 1, 1, 2, 3, 3, 1, 2, 3, 1, 5, 1, '2020-01-02', '{"x": true, "y": true}', 9
	FROM (VALUES (1), (2), (3), (4), (42)) AS v (id);
INSERT INTO orders (id, book, fence_token) VALUES (1, 1, 9), (2, 2, 9), (3, 3, 9);
INSERT INTO other VALUES (1, 'one', 1, 'b', 1, 1, 1), (2, 'two', 2, 'b', 2, 2, 2);
INSERT INTO old VALUES (1, 10, 'o1', 1, 1, 1), (2, 20, 'o2', 2, 2, 2), (3, 30, 'o3', 3, 3, 3);
INSERT INTO older VALUES (1), (2);
INSERT INTO prices VALUES (1, 70, true), (2, 80, false);
INSERT INTO sold VALUES (1, 10), (2, 20);
INSERT INTO src VALUES (1, 100, 's1', 1, NULL), (2, 200, 's2', 2, 1), (77, 700, 's77', 3, 1);
INSERT INTO x VALUES (1, 1);`,
	sqlfence.SQLite: `
CREATE TABLE books (id INTEGER PRIMARY KEY, isbn TEXT UNIQUE, price INT DEFAULT 10, title DEFAULT 'none', stock INT DEFAULT 5,
	old, x, y, a, b, c, d, changed, "where", "from", "set", "key", "do", "end", "as", "and", "offset", live DEFAULT 1, doc, shelf, note, serial, attempt DEFAULT 1, editedby,
	fence_token INTEGER);
CREATE INDEX i ON books (price);
CREATE TABLE orders (id INTEGER PRIMARY KEY, book INT, price INT DEFAULT 3, total INT DEFAULT 0, fence_token INTEGER);
CREATE TABLE other (id INTEGER, title, price, books, a, serial, "set");
CREATE TABLE old (id INT, price INT, title, "from", "where", "offset");
CREATE TABLE older (id INT);
CREATE TABLE prices (book INT, price INT, old);
CREATE TABLE sold (book INT, n INT);
CREATE TABLE src (id INT, price INT, title, x, parent);
CREATE TABLE x (id INT, price INT);
CREATE TABLE pens (x INT);
CREATE TABLE shops (id INTEGER PRIMARY KEY);
CREATE TABLE books_log (id DEFAULT 7, note DEFAULT 'n');
CREATE TABLE books2 (price, note);
CREATE TABLE books$ (price);
CREATE TABLE booksé (price);
CREATE TABLE "bo""oks" (price);
INSERT INTO books (id, isbn, title, old, x, y, a, b, c, d, "where", "from", "set", "key", "do", "end", "as", "and", "offset", doc, fence_token)
	SELECT column1, 'i' || column1, 'title ' || column1 % 3, 1, column1, 2, 1, 2, 7, 7, 1, 3, 1, 2, 2, 3, 1, 5, 1, '{"a": {"b": 1}, "b": 1}', 9
	FROM (VALUES (1), (2), (3), (4), (42));
INSERT INTO orders (id, book, fence_token) VALUES (1, 1, 9), (2, 2, 9), (3, 3, 9);
INSERT INTO other VALUES (1, 'one', 1, 'b', 1, 1, 1), (2, 'two', 2, 'b', 2, 2, 2);
INSERT INTO old VALUES (1, 10, 'o1', 1, 1, 1), (2, 20, 'o2', 2, 2, 2), (3, 30, 'o3', 3, 3, 3);
INSERT INTO older VALUES (1), (2);
INSERT INTO prices VALUES (1, 70, 1), (2, 80, 0);
INSERT INTO sold VALUES (1, 10), (2, 20);
INSERT INTO src VALUES (1, 100, 's1', 1, NULL), (2, 200, 's2', 2, 1), (77, 700, 's77', 3, 1);
INSERT INTO x VALUES (1, 1);`,
	sqlfence.MySQL: `
CREATE TABLE books (id int PRIMARY KEY DEFAULT 1000, isbn varchar(20) UNIQUE, price int DEFAULT 10, title varchar(40) DEFAULT 'none', grp int,
	sold date, at varchar(40), tag varchar(40), rownum int, serial bigint DEFAULT 1, attempt bigint DEFAULT 1, editedby varchar(20), fence_token bigint, FULLTEXT (title));
CREATE TABLE orders (id int PRIMARY KEY DEFAULT 1000, book int, price int DEFAULT 3, fence_token bigint);
CREATE TABLE pens (id int, price int, grp int, mark bigint);
CREATE TABLE inks (id int);
CREATE TABLE other (id int, price int, grp int);
CREATE TABLE prices (book int, price int);
CREATE TABLE x (id int, price int);
INSERT INTO books (id, isbn, title, grp, fence_token) VALUES (1, 'i1', 'a', 1, 9), (2, 'i2', 'b', 2, 9), (3, 'i3', 'c', 1, 9), (4, 'i4', 'a', 2, 9), (42, 'i42', 'b', 1, 9);
INSERT INTO orders (id, book, fence_token) VALUES (1, 1, 9), (2, 2, 9), (3, 3, 9);
INSERT INTO pens VALUES (1, 100, 1, 0), (2, 200, 2, 0), (77, 700, 1, 0);
INSERT INTO inks VALUES (1), (77);
INSERT INTO other VALUES (7, 5, 1), (8, 6, 2), (9, 7, 2);
INSERT INTO prices VALUES (1, 15), (2, 25);
INSERT INTO x VALUES (1, 1);`,
}

// effectSetup returns the statements that create the tables and the ledger.
func effectSetup(d sqlfence.Dialect) []string {
	all := slices.DeleteFunc(strings.SplitAfter(effectSchema[d]+effectLedgers[d], ";\n"), func(text string) bool { return strings.TrimSpace(text) == "" })
	if d == sqlfence.Postgres {
		all = append(all, tokens.LedgerFunction())
	}
	return all
}

var effectLedgers = map[sqlfence.Dialect]string{
	sqlfence.Postgres: effectLedger,
	sqlfence.SQLite:   effectLedger,
	sqlfence.MySQL:    strings.Replace(effectLedger, "name text", "name varbinary(512)", 1),
}

const effectLedger = `
CREATE TABLE jobs (id bigint PRIMARY KEY, state varchar(20), attempt bigint);
INSERT INTO jobs VALUES (42, 'running', 12);
CREATE TABLE fencing_tokens (name text NOT NULL PRIMARY KEY, token bigint NOT NULL);
INSERT INTO fencing_tokens VALUES ('books', 12), ('orders', 12);`

// A preparation is run in a statement's transaction before it.
type preparation struct {
	dialect   sqlfence.Dialect
	statement *regexp.Regexp // it is run before the statements that match
	sql       string
}

func prepare(d sqlfence.Dialect, statement, sql string) preparation {
	return preparation{d, regexp.MustCompile(`(?is)` + statement), sql}
}

var preparations = []preparation{
	// For a plain INSERT the keys of small numbers are free. For one with ON CONFLICT or OR IGNORE they are taken.
	prepare(sqlfence.Postgres, `insert into .*books`, "UPDATE books SET id = id + 500"),
	prepare(sqlfence.SQLite, `insert (or \w+ )?into .*books`, "UPDATE books SET id = id + 500"),
	prepare(sqlfence.MySQL, `insert .*books`, "UPDATE books SET id = id + 500 ORDER BY id DESC"),
	prepare(sqlfence.Postgres, `on\s+conflict`, "UPDATE books SET id = id - 500"),
	prepare(sqlfence.SQLite, `on\s+conflict|or ignore`, "UPDATE books SET id = id - 500 WHERE id > 500"),
	prepare(sqlfence.MySQL, `on duplicate key|ignore`, "UPDATE books SET id = id - 500 WHERE id > 500 ORDER BY id"),
	prepare(sqlfence.Postgres, `set id = 2 `, "DELETE FROM books WHERE id = 2"),
	prepare(sqlfence.SQLite, `set id = 2 `, "DELETE FROM books WHERE id = 2"),

	prepare(sqlfence.Postgres, `\bshop\b`, `CREATE SCHEMA shop; ALTER TABLE books SET SCHEMA shop;
		SELECT set_config('search_path', 'shop, ' || current_setting('search_path'), true)`),
	prepare(sqlfence.Postgres, `current of`, "DECLARE c CURSOR FOR SELECT * FROM books FOR UPDATE; FETCH 2 FROM c"),
	prepare(sqlfence.Postgres, `^fetch all from books`, "DECLARE books CURSOR FOR SELECT id FROM books ORDER BY id"),
	prepare(sqlfence.Postgres, `^execute books_by_id`, "PREPARE books_by_id(int) AS SELECT title FROM books WHERE id = $1"),
	prepare(sqlfence.Postgres, `^(rollback to|release) books`, "SAVEPOINT books; UPDATE other SET price = 99"),
	prepare(sqlfence.SQLite, `^(rollback to|release) books`, "SAVEPOINT books; UPDATE other SET price = 99"),
	prepare(sqlfence.Postgres, `tags \?`, `ALTER TABLE books ALTER tags TYPE jsonb USING '{"a": 1, "b": 2}'`),
	prepare(sqlfence.Postgres, `b'01'`, "ALTER TABLE books ALTER a TYPE bit(2) USING b'00', ALTER c TYPE bit(8) USING b'00000000', ALTER d TYPE text"),
	prepare(sqlfence.Postgres, `case when a and b`, "ALTER TABLE books ALTER a TYPE bool USING a = 1, ALTER b TYPE bool USING true, ALTER c TYPE bool USING true, ALTER d TYPE bool USING false"),
	prepare(sqlfence.Postgres, `case when a then`, "ALTER TABLE books ALTER a TYPE bool USING a = 1"),
	prepare(sqlfence.Postgres, `books\*2`, "ALTER TABLE other ALTER books TYPE int USING 4"),
	prepare(sqlfence.Postgres, `^refresh`, "ALTER TABLE books RENAME TO stock; CREATE MATERIALIZED VIEW books AS SELECT * FROM stock"),
	prepare(sqlfence.Postgres, `books\.prices`, "CREATE SCHEMA books; CREATE TABLE books.prices (price int)"),
	prepare(sqlfence.Postgres, `into other select \* from books`, "DROP TABLE other; CREATE TABLE other (LIKE books INCLUDING INDEXES)"),
	prepare(sqlfence.SQLite, `into other select \* from books`, "DROP TABLE other; CREATE TABLE other AS SELECT * FROM books LIMIT 0"),
	prepare(sqlfence.Postgres, `create unique index`, "UPDATE books SET title = id"),
	prepare(sqlfence.SQLite, `create unique index`, "DROP INDEX i; UPDATE books SET title = id"),
	prepare(sqlfence.Postgres, `select \* from old`, `ALTER TABLE old DROP title, DROP "from", DROP "where", DROP "offset"`),
	prepare(sqlfence.SQLite, `select \* from old`, "CREATE TEMP TABLE old AS SELECT id, price FROM main.old"),
	prepare(sqlfence.SQLite, `into books values`, "DROP TABLE books; CREATE TABLE books (id INTEGER PRIMARY KEY, price INT)"),
	prepare(sqlfence.SQLite, `\btemp\.books`, "CREATE TEMP TABLE books AS SELECT * FROM main.books; CREATE TEMP TABLE fencing_tokens AS SELECT * FROM main.fencing_tokens; CREATE TEMP TABLE jobs AS SELECT * FROM main.jobs"),
}

// preparations returns the statements that must run before the statement.
func (s *effectSample) preparations(d sqlfence.Dialect) (all []string) {
	for _, p := range preparations {
		if p.dialect == d && p.statement.MatchString(s.sql) {
			all = append(all, p.sql)
		}
	}
	return all
}

// undone reports whether a rollback undoes the statement. A rollback keeps prepared statements, and MySQL commits before
// most statements that define something.
func (s *effectSample) undone(d sqlfence.Dialect) bool {
	return !s.is("prepare") && d != sqlfence.MySQL || slices.ContainsFunc([]string{"update", "insert", "delete", "replace", "with", "select", "explain"}, s.is) && !strings.Contains(strings.ToLower(s.sql), "outfile")
}

// alone reports whether the statement can't run in a transaction.
func (s *effectSample) alone() bool {
	return s.is("vacuum") || s.is("attach") || s.is("detach") || s.is("begin")
}
