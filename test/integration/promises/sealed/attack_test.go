package sealed_test

import (
	"database/sql/driver"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An attack is statements that the bare driver sends on one connection. The seal refuses the last one, with its
// message, and without a change.
type attack struct {
	name       string
	statements string // separated by " ;; "
	says       string // part of the message
}

const (
	unproven = "sqlfence: table books is sealed"
	stale    = "sqlfence: stale token 6 for table books, which has 7"
)

// onBoth are attacks in SQL that both databases have.
var onBoth = []attack{
	{"update", "UPDATE books SET price = 99", unproven},
	{"update of no column", "UPDATE books SET price = price", unproven},
	{"the mark as it is", "UPDATE books SET price = 99, fence_token = fence_token", unproven},
	{"a positive token", "UPDATE books SET price = 99, fence_token = 42", unproven},
	{"zero", "UPDATE books SET price = 99, fence_token = 0", unproven},
	{"stale update", "UPDATE books SET price = 99, fence_token = -6 WHERE id = 1", stale},
	{"update, stale for one of the rows", "UPDATE books SET price = 99, fence_token = -6 WHERE id > 1", stale},
	{"minus the row's own mark, which was none", "UPDATE books SET price = 99, fence_token = -fence_token WHERE id = 3", unproven},
	{"beyond all tokens", "UPDATE books SET price = 99, fence_token = -9000000000000000000", "is not issued"},
	{"insert", "INSERT INTO books (id) VALUES (9)", unproven},
	{"insert with a token", "INSERT INTO books (id, fence_token) VALUES (9, 42)", unproven},
	{"insert, one row without", "INSERT INTO books (id, fence_token) VALUES (9, -42), (10, 0)", unproven},
	{"insert of a query", "INSERT INTO books (id, price, fence_token) SELECT id + 100, price, fence_token FROM books", unproven},
	{"delete", "DELETE FROM books WHERE id = 1", unproven},
	{"delete of all", "DELETE FROM books", unproven},
	{"delete in a transaction after a proven one", "BEGIN ;; {delete 3 with 7} ;; DELETE FROM books WHERE id = 1", unproven},
	{"delete in a transaction after a proven one of nothing", "BEGIN ;; {delete 99 with 7} ;; DELETE FROM books WHERE id = 1", unproven},
	{"stale delete", "{delete 1 with 6}", stale},
	{"delete with another table's proof", "DELETE FROM books WHERE id = 1 AND {proof authors 9}", unproven},
	{"delete with a token of 0", "{delete 3 with 0}", "sqlfence: "},
	{"delete with a token below 0", "{delete 3 with -9}", "sqlfence: "},
	{"update behind a savepoint", "BEGIN ;; SAVEPOINT a ;; UPDATE books SET price = 10, fence_token = -7 WHERE id = 2 ;; ROLLBACK TO SAVEPOINT a ;; UPDATE books SET price = 99 WHERE id = 2", unproven},
}

// onOne are further attacks, by dialect.
var onOne = map[sqlfence.Dialect][]attack{
	sqlfence.Postgres: {
		{"NULL", "UPDATE books SET price = 99, fence_token = NULL", unproven},
		{"default", "UPDATE books SET price = 99, fence_token = DEFAULT", unproven},
		{"the lowest integer", "UPDATE books SET price = 99, fence_token = -9223372036854775808", "out of range"},
		{"truncate", "TRUNCATE books", unproven},
		{"truncate by cascade", "TRUNCATE authors CASCADE", unproven},
		{"upsert", "INSERT INTO books (id, fence_token) VALUES (1, -8) ON CONFLICT (id) DO UPDATE SET price = 99", unproven},
		{"upsert of the excluded mark", "INSERT INTO books (id, fence_token) VALUES (1, -8) ON CONFLICT (id) DO UPDATE SET price = 99, fence_token = EXCLUDED.fence_token", unproven},
		{"stale upsert", "INSERT INTO books (id, fence_token) VALUES (1, -6) ON CONFLICT (id) DO UPDATE SET price = 99, fence_token = -6", stale},
		{"merge, update", "MERGE INTO books USING (VALUES (1)) AS v (i) ON id = i WHEN MATCHED THEN UPDATE SET price = 99", unproven},
		{"merge, stale update", "MERGE INTO books USING (VALUES (1)) AS v (i) ON id = i WHEN MATCHED THEN UPDATE SET price = 99, fence_token = -6", stale},
		{"merge, delete", "MERGE INTO books USING (VALUES (1)) AS v (i) ON id = i WHEN MATCHED THEN DELETE", unproven},
		{"merge, insert", "MERGE INTO books USING (VALUES (9)) AS v (i) ON id = i WHEN NOT MATCHED THEN INSERT (id) VALUES (9)", unproven},
		{"merge, update proven and delete not", "MERGE INTO books USING (VALUES (3), (1)) AS v (i) ON id = i WHEN MATCHED AND i = 3 THEN UPDATE SET fence_token = -7 WHEN MATCHED THEN DELETE", unproven},
		{"with, several writes", "WITH a AS (UPDATE books SET price = 11, fence_token = -7 WHERE id = 3 RETURNING 1) UPDATE books SET price = 99 FROM a WHERE id = 1", unproven},
		{"with, a delete beside a proven update", "WITH a AS (UPDATE books SET price = 11, fence_token = -7 WHERE id = 3 RETURNING 1) DELETE FROM books USING a WHERE id = 1", unproven},
		{"a function", "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'UPDATE books SET price = 99' ;; SELECT f()", unproven},
		{"a security definer", "CREATE FUNCTION f() RETURNS void LANGUAGE sql SECURITY DEFINER AS 'DELETE FROM books' ;; SELECT f()", unproven},
		{"DO", "DO 'BEGIN UPDATE books SET price = 99; END'", unproven},
		{"a procedure after a proven write", "CREATE PROCEDURE p() LANGUAGE plpgsql AS $$BEGIN DELETE FROM books WHERE id = 3 AND {proof books 7}; DELETE FROM books WHERE id = 1; END$$ ;; CALL p()", unproven},
		{"a function in the WHERE of a proven delete", "CREATE FUNCTION f() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN DELETE FROM books WHERE id = 1; RETURN true; END' ;; DELETE FROM books WHERE id = 3 AND {proof books 7} AND f()", unproven},
		{"a trigger", "CREATE FUNCTION t() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE books SET price = 99; RETURN NEW; END' ;; CREATE TRIGGER t AFTER INSERT ON authors FOR EACH ROW EXECUTE FUNCTION t() ;; INSERT INTO authors VALUES (5, 'x')", unproven},
		{"a trigger of the table before the seal's", "CREATE FUNCTION t() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.fence_token := 50; RETURN NEW; END' ;; CREATE TRIGGER a BEFORE UPDATE ON books FOR EACH ROW EXECUTE FUNCTION t() ;; UPDATE books SET price = 99, fence_token = -8", unproven},
		{"a rule", "CREATE RULE r AS ON INSERT TO authors DO ALSO UPDATE books SET price = 99 ;; INSERT INTO authors VALUES (5, 'x')", unproven},
		{"a view", "CREATE VIEW v AS SELECT id, price FROM books ;; UPDATE v SET price = 99", unproven},
		{"a cascade of delete", "DELETE FROM authors WHERE id = 1", unproven},
		{"a cascade after a proven delete", "BEGIN ;; {delete 3 with 7} ;; DELETE FROM authors WHERE id = 1", unproven},
		{"a merge after a proven delete", "BEGIN ;; {delete 3 with 7} ;; MERGE INTO books USING (VALUES (1)) AS v (i) ON id = i WHEN MATCHED THEN DELETE", unproven},
		{"a delete in WITH after a proven delete", "BEGIN ;; {delete 3 with 7} ;; WITH a AS (DELETE FROM books WHERE id = 1 RETURNING 1) SELECT * FROM a", unproven},
		{"a cursor after a proven delete", "BEGIN ;; DECLARE c CURSOR FOR SELECT * FROM books WHERE id = 1 FOR UPDATE ;; FETCH c ;; {delete 3 with 7} ;; DELETE FROM books WHERE CURRENT OF c", unproven},
		{"a trigger that deletes, within a proven delete", "CREATE FUNCTION t() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM books WHERE id = 1; RETURN OLD; END' ;; CREATE TRIGGER t AFTER DELETE ON books FOR EACH ROW EXECUTE FUNCTION t() ;; {delete 3 with 7}", unproven},
		{"a trigger before the row's, within a proven delete", "CREATE FUNCTION t() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM books WHERE id = 1; RETURN OLD; END' ;; CREATE TRIGGER t BEFORE DELETE ON books FOR EACH ROW WHEN (OLD.id = 3) EXECUTE FUNCTION t() ;; {delete 3 with 7}", unproven},
		{"a cascade of update", "UPDATE authors SET id = 2 WHERE id = 1", unproven},
		{"a cursor", "BEGIN ;; DECLARE c CURSOR FOR SELECT * FROM books FOR UPDATE ;; FETCH c ;; UPDATE books SET price = 99 WHERE CURRENT OF c", unproven},
		{"a cursor that deletes", "BEGIN ;; DECLARE c CURSOR FOR SELECT * FROM books FOR UPDATE ;; FETCH c ;; DELETE FROM books WHERE CURRENT OF c", unproven},
		{"prepared", "PREPARE a AS UPDATE books SET price = $1 ;; EXECUTE a (99)", unproven},
		{"another search path", "CREATE SCHEMA evil{unique} ;; SELECT set_config('search_path', 'evil{unique}, ' || current_schema() || ', pg_catalog', false) ;; CREATE FUNCTION evil{unique}.int8le(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false' ;; CREATE FUNCTION evil{unique}.lt(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false' ;; CREATE OPERATOR evil{unique}.< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil{unique}.lt) ;; UPDATE books SET price = 99", unproven},
		{"a replica's role", "SET session_replication_role = replica ;; UPDATE books SET price = 99", unproven},
		{"a replica's role, stale", "SET session_replication_role = replica ;; UPDATE books SET price = 99, fence_token = -6 WHERE id = 1", stale},
		{"a proof before the statement", "BEGIN ;; SELECT set_config('sqlfence.delete_books', '8', true) ;; DELETE FROM books WHERE id = 1", unproven},
		{"a proof of the session", "SET sqlfence.delete_books = '8' ;; DELETE FROM books WHERE id = 1", unproven},
		{"a proof with no number", "DELETE FROM books WHERE id = 1 AND set_config('sqlfence.delete_books', 'x', true) IS NOT NULL", "invalid input syntax"},
		{"copy", "COPY books (id) FROM PROGRAM 'echo 9'", unproven},
		{"copy with a token", "COPY books (id, fence_token) FROM PROGRAM 'echo 9,42' WITH (FORMAT csv)", unproven},
	},
	sqlfence.MySQL: {
		{"update ignore", "UPDATE IGNORE books SET price = 99", unproven},
		{"stale update ignore", "UPDATE IGNORE books SET price = 99, fence_token = -6 WHERE id = 1", stale},
		{"insert ignore", "INSERT IGNORE INTO books (id) VALUES (9)", unproven},
		{"delete ignore", "DELETE IGNORE FROM books", unproven},
		{"replace", "REPLACE INTO books (id, fence_token) VALUES (1, -8)", unproven},
		{"upsert", "INSERT INTO books (id, fence_token) VALUES (1, -8) ON DUPLICATE KEY UPDATE price = 99", unproven},
		{"upsert of the mark", "INSERT INTO books (id, fence_token) VALUES (1, -8) ON DUPLICATE KEY UPDATE price = 99, fence_token = VALUES(fence_token)", unproven},
		{"stale upsert", "INSERT INTO books (id, fence_token) VALUES (1, -6) ON DUPLICATE KEY UPDATE price = 99, fence_token = -6", stale},
		{"without strictness", "SET sql_mode = '' ;; UPDATE books SET price = 99, fence_token = 'x'", unproven},
		{"several tables", "UPDATE books JOIN authors ON authors.id = books.author SET price = 99, name = 'y'", unproven},
		{"delete of several tables", "DELETE books FROM books JOIN authors ON authors.id = books.author", unproven},
		{"a procedure", "CREATE PROCEDURE p() UPDATE books SET price = 99 ;; CALL p()", unproven},
		{"a procedure after a proven write", "CREATE PROCEDURE p() BEGIN DELETE FROM books WHERE id = 99 AND {proof books 7}; DELETE FROM books WHERE id = 1; END ;; CALL p()", unproven},
		{"a trigger", "CREATE TRIGGER t AFTER INSERT ON authors FOR EACH ROW UPDATE books SET price = 99 ;; INSERT INTO authors VALUES (5, 'x')", unproven},
		{"a trigger of the table before the seal's", "CREATE TRIGGER a BEFORE UPDATE ON books FOR EACH ROW PRECEDES `sqlfence-seal:update:books` SET NEW.fence_token = 50 ;; UPDATE books SET price = 99, fence_token = -8", unproven},
		{"a view", "CREATE VIEW v AS SELECT id, price FROM books ;; UPDATE v SET price = 99", unproven},
		{"prepared", "PREPARE a FROM 'UPDATE books SET price = 99' ;; EXECUTE a", unproven},
		{"a proof before the statement", "SELECT {proof books 8} ;; DELETE FROM books WHERE id = 1", unproven},
	},
}

// proofs are conditions with which a DELETE presents a token of a table.
var proofs = map[sqlfence.Dialect]string{
	sqlfence.Postgres: "set_config('sqlfence.delete_{table}', '{token}', true) IS NOT NULL",
	sqlfence.MySQL:    "(@sqlfence_delete := CONCAT('{table}:', NOW(6), ':', {token})) IS NOT NULL",
}

// sql returns the statements of an attack.
func (a attack) sql(b harness.Base, l *lab) []string {
	text := a.statements
	for _, id := range []string{"1", "3", "99"} {
		for _, token := range []string{"0", "6", "7", "-9"} {
			text = strings.ReplaceAll(text, "{delete "+id+" with "+token+"}", "DELETE FROM books WHERE id = "+id+" AND {proof books "+token+"}")
		}
	}
	for _, table := range []string{"books", "authors"} {
		for _, token := range []string{"0", "6", "7", "8", "9", "-9"} {
			proof := strings.NewReplacer("{table}", table, "{token}", token).Replace(proofs[b.Dialect])
			text = strings.ReplaceAll(text, "{proof "+table+" "+token+"}", proof)
		}
	}
	return strings.Split(strings.ReplaceAll(text, "{unique}", l.unique), " ;; ")
}

// The database refuses writes that bypass the fence.
func TestNobodyGetsPastTheSeal(t *testing.T) {
	for _, b := range harness.Chosen(bases[:3]) {
		t.Run(b.Name, func(t *testing.T) {
			for r, rules := range [][]sqlfence.Rule{nil, {sqlfence.Ledger()}} {
				shared := newAttacked(t, b, rules)
				for i, a := range append(onBoth, onOne[b.Dialect]...) {
					if testing.Short() && i%2 != r { // each attack under one of the rulesets
						continue
					}
					name := a.name
					if len(rules) > 0 {
						name += ", ledger"
					}
					t.Run(name, func(t *testing.T) {
						l := shared
						if strings.Contains(a.statements, "CREATE ") { // the created object would stay
							l = newAttacked(t, b, rules)
						}
						a.run(t, l)
					})
				}
			}
		})
	}
}

// newAttacked is a lab with a cascading foreign key.
func newAttacked(t *testing.T, b harness.Base, rules []sqlfence.Rule) *lab {
	t.Helper()
	l := newUnsealed(t, b, rules...)
	l.exec(t, "INSERT INTO authors (id, name) VALUES (1, 'x')")
	l.exec(t, "UPDATE books SET author = 1")
	if b.Dialect == sqlfence.Postgres {
		l.exec(t, "ALTER TABLE books ADD FOREIGN KEY (author) REFERENCES authors (id) ON DELETE CASCADE ON UPDATE CASCADE")
	}
	l.seal(t)
	return l
}

// run sends an attack on a separate connection. If the seal refuses the attack, nothing in the lab has changed.
func (a attack) run(t *testing.T, l *lab) {
	t.Helper()
	if l.Dialect == sqlfence.Postgres && harness.Lacks(t, l.plain, a.statements) {
		t.Skip("the server doesn't have it")
	}
	before := l.books(t)
	conn, err := l.plain.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Raw(func(any) error { return driver.ErrBadConn }) // closes the session, with its settings
	statements := a.sql(l.Base, l)
	for i, query := range statements {
		_, err := conn.ExecContext(t.Context(), query)
		switch last := i == len(statements)-1; {
		case !last && err != nil:
			t.Fatalf("%s: %v", query, err)
		case last && err == nil:
			t.Errorf("%s: no error", query)
		case last && !strings.Contains(err.Error(), a.says) && !(len(l.rules) > 2 && strings.Contains(err.Error(), "sqlfence: ")):
			t.Errorf("%s: %v, want %q in it", query, err, a.says)
		}
	}
	_, _ = conn.ExecContext(t.Context(), "ROLLBACK")
	l.want(t, before)
}

// Bare SQL that presents the newest token succeeds, as programs in other languages send it.
func TestProvenByHand(t *testing.T) {
	for _, b := range harness.Chosen(bases[:3]) {
		t.Run(b.Name, func(t *testing.T) {
			l := newLab(t, b, sqlfence.Ledger())
			for _, query := range []string{
				"UPDATE books SET price = 30, fence_token = -7 WHERE id = 1",
				"INSERT INTO books (id, price, fence_token) VALUES (9, 40, -7)",
				"DELETE FROM books WHERE id = 2 AND " + strings.NewReplacer("{table}", "books", "{token}", "7").Replace(proofs[b.Dialect]),
			} {
				l.exec(t, query)
			}
			l.want(t, "1:30@7 3:10@0 9:40@7")
		})
	}
}

// The message of a refusal is readable in the databases' own clients.
func TestClients(t *testing.T) {
	for _, b := range []harness.Base{bases[0], bases[2]} {
		t.Run(b.Name, func(t *testing.T) {
			l := newLab(t, b)
			run := client(t, l)
			for query, want := range map[string]string{
				"UPDATE books SET price = 30 WHERE id = 1":                   "sqlfence: table books is sealed: the write carries no fencing token (set fence_token to minus the token)",
				"UPDATE books SET price = 30, fence_token = -6 WHERE id = 1": stale,
				"DELETE FROM books WHERE id = 1":                             unproven + ": the DELETE ",
				"INSERT INTO books (id) VALUES (9)":                          unproven,
			} {
				if got := run(query); !strings.Contains(got, want) {
					t.Errorf("%s: %s, want %s", query, got, want)
				}
			}
			l.want(t, "1:10@7 2:10@7 3:10@0")
			if got := run("UPDATE books SET price = 30, fence_token = -42 WHERE id = 1"); strings.Contains(got, "sqlfence") {
				t.Error(got)
			}
			l.want(t, "1:30@42 2:10@7 3:10@0")
		})
	}
}

// client returns a function that runs a statement by the database's command line client.
func client(t *testing.T, l *lab) func(query string) string {
	t.Helper()
	address, err := url.Parse(l.dsn)
	if err != nil && l.Dialect == sqlfence.Postgres {
		t.Fatal(err)
	}
	command := func(query string) *exec.Cmd {
		params := address.Query()
		path := params.Get("search_path")
		params.Del("search_path")
		server := *address
		server.RawQuery = params.Encode()
		cmd := exec.Command("psql", "-X", server.String(), "-c", query)
		cmd.Env = append(os.Environ(), "PGOPTIONS=-c search_path="+path)
		return cmd
	}
	if l.Dialect == sqlfence.MySQL {
		c, err := mysql.ParseDSN(l.dsn)
		if err != nil {
			t.Fatal(err)
		}
		host, port, _ := strings.Cut(c.Addr, ":")
		command = func(query string) *exec.Cmd {
			cmd := exec.Command("mariadb", "-h"+host, "-P"+port, "-u"+c.User, c.DBName, "-e", query)
			cmd.Env = append(os.Environ(), "MYSQL_PWD="+c.Passwd)
			return cmd
		}
	}
	need.Program(t, command("").Args[0])
	return func(query string) string {
		out, _ := command(query).CombinedOutput() // the status is the statement's
		return string(out)
	}
}
