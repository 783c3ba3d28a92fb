package sealed_test

import (
	"context"
	"database/sql"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// as opens the database of a lab on PostgreSQL with one more parameter and the lab's rules.
func (l *lab) as(t testing.TB, name, value string, rules ...sqlfence.Option) *sql.DB {
	t.Helper()
	if len(rules) == 0 {
		rules = []sqlfence.Option{sqlfence.WithTable("books", l.rules...)}
	}
	return l.Fenced(t, l.with(t, name, value), rules...)
}

// with returns the DSN of a lab on PostgreSQL with one more parameter.
func (l *lab) with(t testing.TB, name, value string) string {
	t.Helper()
	u, err := url.Parse(l.dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // libpq doesn't decode +
	return u.String()
}

// login opens a lab's database on PostgreSQL as another role, with the password x.
func (l *lab) login(t testing.TB, role string) *sql.DB {
	t.Helper()
	u, err := url.Parse(l.dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "x")
	return l.Raw(t, u.String())
}

// behind starts change while another transaction has locked the table and executed f. After change waits for the lock,
// that transaction commits.
func (l *lab) behind(t *testing.T, change func(), f string) {
	t.Helper()
	other := harness.Begin(context.Background(), t, l.plain, sql.LevelDefault)
	if _, err := other.Exec("LOCK TABLE books IN ACCESS EXCLUSIVE MODE; " + f); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); change() }()
	harness.Eventually(t, "it waits", func() bool {
		var waits int
		if err := other.QueryRow("SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'ShareUpdateExclusiveLock' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits > 0
	})
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	<-done
}

// Seal and Unseal see changes that were committed while they waited, even if the default isolation level is REPEATABLE
// READ.
func TestSealAtAnotherLevel(t *testing.T) {
	for _, b := range harness.Chosen(postgres) {
		l := newLab(t, b)
		db := l.as(t, "default_transaction_isolation", "repeatable read")
		l.behind(t, func() {
			if err := schema.Seal(t.Context(), db); err != nil {
				t.Error(err)
			}
		}, `DROP TRIGGER "~sqlfence_write" ON books`)
		l.refused(t, "UPDATE books SET price = 99", unproven)
		l.exec(t, `DROP TRIGGER "~sqlfence_delete" ON books`)
		l.behind(t, func() {
			if err := schema.Unseal(t.Context(), db); err != nil {
				t.Error(err)
			}
		}, `CREATE TRIGGER "~sqlfence_delete" BEFORE DELETE ON books FOR EACH ROW EXECUTE FUNCTION sqlfence_delete_books()`)
		l.exec(t, "DELETE FROM books WHERE id = 3")

		plans, err := schema.SealSQL(db)
		if err != nil {
			t.Fatal(err)
		}
		statements := plans[0].Statements
		tx := harness.Begin(context.Background(), t, l.plain, sql.LevelSerializable)
		if _, err := tx.Exec(statements[0]); harness.SQLState(err) != "25000" {
			t.Errorf("in a transaction at another level: %v", err)
		}
	}
}

// Seal seals the table that finally has the name, not the table that had the name when Seal began.
func TestSealBesideASwap(t *testing.T) {
	l := newUnsealed(t, harness.Bases[1])
	l.exec(t, "CREATE TABLE copied (LIKE books INCLUDING ALL); INSERT INTO copied SELECT * FROM books")
	l.behind(t, func() { l.seal(t) }, "ALTER TABLE books RENAME TO old; ALTER TABLE copied RENAME TO books")
	l.refused(t, "UPDATE books SET price = 99", unproven)
	l.exec(t, "UPDATE old SET price = 99")
	l.exec(t, "DROP TABLE old; CREATE TABLE copied (LIKE books INCLUDING ALL); INSERT INTO copied SELECT * FROM books")
	l.behind(t, func() {
		if err := schema.Unseal(t.Context(), l.db); err != nil {
			t.Error(err)
		}
	}, "ALTER TABLE books RENAME TO old; ALTER TABLE copied RENAME TO books")
	if _, err := l.plain.Exec("UPDATE old SET price = 99"); harness.SQLState(err) != "FT001" {
		t.Errorf("the table that was called books: %v", err)
	}
}

// A schema may have tables of several owners.
func TestSeveralOwners(t *testing.T) {
	l := newUnsealed(t, harness.Bases[1])
	var home string
	if err := l.plain.QueryRow("SELECT current_schema()").Scan(&home); err != nil {
		t.Fatal(err)
	}
	for i, table := range []string{"books", "papers"} {
		role := []string{"first", "second"}[i] + l.unique
		if table != "books" {
			l.exec(t, "CREATE TABLE "+table+" (LIKE books INCLUDING ALL)")
		}
		l.exec(t, "CREATE ROLE "+role+"; GRANT USAGE, CREATE ON SCHEMA "+home+" TO "+role+"; ALTER TABLE "+table+" OWNER TO "+role)
		defer l.exec(t, "DROP OWNED BY "+role+"; DROP ROLE "+role)
		owner := l.as(t, "role", role, sqlfence.WithTable(table, l.rules...))
		if err := schema.Seal(t.Context(), owner); err != nil {
			t.Errorf("%s: %v", table, err)
		}
		l.refused(t, "TRUNCATE "+table, "sqlfence: table "+table+" is sealed")
	}
}

// Fenced programs write negative marks to a table that a migration recreates, because the programs still treat the
// table as sealed. Seal makes the marks positive, in every partition and child.
func TestNegativeMarksBeforeTheSeal(t *testing.T) {
	for name, makes := range map[string]string{
		"a table":            "CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL)",
		"partitions":         "CREATE TABLE books (id integer, price integer, fence_token bigint) PARTITION BY RANGE (id); CREATE TABLE few PARTITION OF books FOR VALUES FROM (0) TO (3); CREATE TABLE more PARTITION OF books DEFAULT PARTITION BY HASH (id); CREATE TABLE most PARTITION OF more FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
		"a deferred trigger": "CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE CONSTRAINT TRIGGER deferred AFTER UPDATE ON books DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f()",
		"a child":            "CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL); CREATE TABLE rare () INHERITS (books); INSERT INTO rare VALUES (4, 10, -9)",
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, harness.Bases[1], sqlfence.SingleUse(), sqlfence.Ledger())
			if _, err := l.db.ExecContext(holding(t, 7), "UPDATE books SET price = 11 WHERE id = 3"); err != nil {
				t.Fatal(err)
			}
			l.exec(t, "DROP TABLE books; "+makes+"; INSERT INTO books VALUES (1, 10, 3), (2, 10, 0), (3, 10, 0)")
			if _, err := l.db.ExecContext(holding(t, 7), "UPDATE books SET price = 12 WHERE id >= 2 AND id < 4"); err != nil {
				t.Fatal(err)
			}
			l.seal(t)
			if found := l.broken(t); len(found) > 0 {
				t.Errorf("found %v", found)
			}
			l.refused(t, "UPDATE books SET price = 99 WHERE id = 3", unproven)
			want := "1:10@3 2:12@7 3:12@7"
			if name == "a child" {
				want += " 4:10@9"
			}
			l.want(t, want)
		})
	}
}

// A trigger of a seal was dropped. The remaining triggers don't prevent Seal from making negative stored tokens
// positive.
func TestNegativeMarksBesideTheSeal(t *testing.T) {
	l := newLab(t, harness.MySQL)
	names := map[string]string{}
	rows, err := l.plain.QueryContext(t.Context(), "SELECT event_manipulation, trigger_name FROM information_schema.triggers WHERE event_object_table = 'books' AND event_object_schema = DATABASE()")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var event, name string
		if err := rows.Scan(&event, &name); err != nil {
			t.Fatal(err)
		}
		names[event] = name
	}
	if err := rows.Err(); err != nil || len(names) != 3 {
		t.Fatal(names, err)
	}
	l.exec(t, "DROP TRIGGER `"+names["UPDATE"]+"`")
	l.exec(t, "UPDATE books SET fence_token = -8 WHERE id = 2")
	l.want(t, "1:10@7 2:10@-8 3:10@0")
	l.seal(t)
	l.want(t, "1:10@7 2:10@8 3:10@0")
	l.refused(t, "UPDATE books SET price = 99, fence_token = -7 WHERE id = 2", "stale token 7")
}

// A renamed table keeps its seal, and a new table has the old name. The name of a third table differs in a letter's
// case.
func TestSealBesideItsLikes(t *testing.T) {
	for _, b := range []harness.Base{harness.Bases[1], harness.MySQL} {
		t.Run(b.Name, func(t *testing.T) {
			l := newLab(t, b)
			l.exec(t, "CREATE TABLE copied (id integer PRIMARY KEY, price integer NOT NULL DEFAULT 10, author integer, fence_token bigint NOT NULL DEFAULT 0)")
			l.exec(t, "INSERT INTO copied SELECT * FROM books")
			l.exec(t, "ALTER TABLE books RENAME TO old")
			l.exec(t, "ALTER TABLE copied RENAME TO books")
			for range 2 { // the second Seal finds the first one's seal
				if _, err := l.db.ExecContext(holding(t, 7), "UPDATE books SET price = 20"); err != nil {
					t.Error(err)
				}
				l.seal(t)
				l.refused(t, "UPDATE books SET price = 99", unproven)
				l.refused(t, "UPDATE old SET price = 99", unproven)
				l.refused(t, "DELETE FROM old", unproven)
				l.want(t, "1:20@7 2:20@7 3:20@7")
			}
			if err := schema.Unseal(t.Context(), l.db); err != nil {
				t.Fatal(err)
			}
			l.exec(t, "UPDATE books SET price = 21")
			l.refused(t, "UPDATE old SET price = 99", unproven)
			l.exec(t, "DROP TABLE old")
			l.seal(t)
			l.refused(t, "UPDATE books SET price = 99", unproven)
			if found := l.broken(t); len(found) > 0 {
				t.Errorf("found %v", found)
			}
		})
	}
}

// While Seal makes stored tokens positive, it also gives way to a writer after a second.
func TestNegativeMarksBesideAWriter(t *testing.T) {
	l := newUnsealed(t, harness.Bases[1])
	l.exec(t, "UPDATE books SET fence_token = -7 WHERE id = 1")
	writer := harness.Begin(context.Background(), t, l.plain, sql.LevelDefault)
	if _, err := writer.Exec("UPDATE books SET price = 11 WHERE id = 2"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	if err := schema.Seal(ctx, l.db); err == nil || !strings.Contains(err.Error(), "lock") && !strings.Contains(err.Error(), "cancel") && ctx.Err() == nil {
		t.Errorf("Seal beside a writer: %v", err)
	}
	if err := writer.Commit(); err != nil {
		t.Fatal(err)
	}
	l.seal(t)
	l.want(t, "1:10@7 2:11@7 3:10@0")
}
