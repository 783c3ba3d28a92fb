package changes_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/changes"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func eachPostgres(t *testing.T, test func(t *testing.T, b harness.Base)) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !strings.Contains("pq pgx", b.Name) {
			t.Skip("another database")
		}
		test(t, b)
	})
}

// The actions of foreign keys, MERGE, WITH, upserts and TRUNCATE raise the count, also in a session that skips usual
// triggers, and after the table's triggers were disabled and enabled again.
func TestPostgresWrites(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		counter := setup(t, db)
		exec(t, db, "ALTER TABLE books ADD pen int REFERENCES pens ON DELETE SET NULL")
		exec(t, db, "INSERT INTO pens (id, price) VALUES (1, 10)")
		exec(t, db, "UPDATE books SET pen = 1")
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		one := func(query string) {
			t.Helper()
			if _, err := conn.ExecContext(t.Context(), query); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
		}
		for _, query := range []string{
			"DELETE FROM pens",
			"MERGE INTO books USING (SELECT 1 AS id) AS n ON books.id = n.id WHEN MATCHED THEN UPDATE SET price = 3",
			"WITH gone AS (DELETE FROM books WHERE id = 3 RETURNING id) SELECT count(*) FROM gone",
			"INSERT INTO books (id, price) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET price = 4",
			"TRUNCATE books",
		} {
			wantRaised(t, counter, query, func() { one(query) })
		}
		one("SET session_replication_role = replica")
		wantRaised(t, counter, "as a replica", func() { one("INSERT INTO books (id, price) VALUES (5, 10)") })
		one("DISCARD ALL")
		wantRaised(t, counter, "with nothing remembered", func() { one("INSERT INTO books (id, price) VALUES (6, 10)") })
		one("ALTER TABLE books RENAME TO tomes")
		one("ALTER TABLE tomes RENAME TO books")
		wantRaised(t, counter, "renamed, and again", func() { one("DELETE FROM books") })
		wantRaised(t, counter, "while its triggers were disabled", func() {
			one("ALTER TABLE books DISABLE TRIGGER ALL")
			if _, err := counter.Count(t.Context(), "books"); err == nil {
				t.Error("a table whose triggers are disabled has a count")
			}
			one("INSERT INTO books (id, price) VALUES (9, 10)")
			one("ALTER TABLE books ENABLE TRIGGER ALL") // as pg_restore does
			counting(t, db, "books")
		})
		wantRaised(t, counter, "enabled again", func() { one("INSERT INTO books (id, price) VALUES (5, 10)") })
	})
}

// A role with the privilege to write to the table needs no other privilege, and can't make the trigger call its
// functions.
func TestPostgresRole(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		counter := setup(t, db)
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var home string
		if err := conn.QueryRowContext(t.Context(), "SELECT current_schema()").Scan(&home); err != nil {
			t.Fatal(err)
		}
		role := home + "_role"
		exec(t, db, "CREATE ROLE "+role)
		t.Cleanup(func() {
			exec(t, db, "DROP OWNED BY "+role)
			exec(t, db, "DROP ROLE "+role)
		})
		exec(t, db, "GRANT CREATE, USAGE ON SCHEMA "+home+" TO "+role)
		exec(t, db, "GRANT INSERT ON books TO "+role)
		for _, query := range []string{
			"SET ROLE " + role,
			"CREATE FUNCTION evil_plus(bigint, integer) RETURNS bigint LANGUAGE sql AS 'SELECT -1000000::bigint'",
			"CREATE FUNCTION evil_equal(integer, integer) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / 0 = 1'",
			"CREATE OPERATOR + (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = evil_plus)",
			"CREATE OPERATOR = (LEFTARG = integer, RIGHTARG = integer, FUNCTION = evil_equal)",
			"SET search_path = " + home + ", pg_catalog",
			"INSERT INTO books (id, price) VALUES (7, 10)",
		} {
			if _, err := conn.ExecContext(t.Context(), query); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
		}
		wantRaised(t, counter, "another role's write", func() {
			if _, err := conn.ExecContext(t.Context(), "INSERT INTO books (id, price) VALUES (8, 10)"); err != nil {
				t.Fatal(err)
			}
		})
		for _, query := range []string{"RESET ROLE", "RESET search_path"} {
			if _, err := conn.ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A role with CREATE on the schema can't make the writers of another role's table run its code.
func TestPostgresForeignFunction(t *testing.T) {
	const foreign = "CREATE FUNCTION sqlfence_changes_v1() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
	for _, made := range []string{
		foreign, "CREATE TABLE fencing_changes (relation oid, slot bigint, n bigint, PRIMARY KEY (relation, slot))",
	} {
		eachPostgres(t, func(t *testing.T, b harness.Base) {
			db := b.Raw(t, b.DSN(t))
			db.SetMaxOpenConns(1)
			var home string
			if err := db.QueryRow("SELECT current_schema()").Scan(&home); err != nil {
				t.Fatal(err)
			}
			role := home + "_role"
			for _, query := range []string{
				createBooks, "CREATE ROLE " + role, "GRANT CREATE, USAGE ON SCHEMA " + home + " TO " + role,
				"SET ROLE " + role, made, "RESET ROLE",
			} {
				exec(t, db, query)
			}
			t.Cleanup(func() {
				exec(t, db, "DROP OWNED BY "+role)
				exec(t, db, "DROP ROLE "+role)
			})
			counter, err := changes.New(db)
			if err != nil {
				t.Fatal(err)
			}
			if err := counter.Setup(t.Context(), "books"); err == nil || !strings.Contains(err.Error(), role) {
				t.Errorf("err = %v, want that %s owns it", err, role)
			}
			var triggers int
			err = db.QueryRow("SELECT count(*) FROM pg_trigger WHERE tgrelid = 'books'::regclass").Scan(&triggers)
			if err != nil || triggers > 0 {
				t.Errorf("%d triggers, %v", triggers, err)
			}
		})
	}
}

// A write to a partition or a child table by its own name fires no trigger of the parent, so Setup refuses such tables.
func TestPostgresRefusesPartitions(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		for _, query := range []string{
			"CREATE TABLE parts (id int) PARTITION BY RANGE (id)",
			"CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (10)",
			"CREATE TABLE parent (id int)", "CREATE TABLE child () INHERITS (parent)",
			"CREATE VIEW shown AS SELECT id FROM parent",
		} {
			exec(t, db, query)
		}
		counter, err := changes.New(db)
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"parts", "part", "parent", "child", "shown"} {
			if err := counter.Setup(t.Context(), table); err == nil || !strings.Contains(err.Error(), "can't be counted") {
				t.Errorf("%s: err = %v, want that it can't be counted", table, err)
			}
		}
		exec(t, db, "CREATE TABLE later (id int)")
		counting(t, db, "later")
		exec(t, db, "ALTER TABLE parts ATTACH PARTITION later FOR VALUES FROM (10) TO (20)")
		_, err = counter.Count(t.Context(), "later")
		harness.WantError(t, err, sqlfence.ErrNotSetUp)
		exec(t, db, "ALTER TABLE parts DETACH PARTITION later")
		count(t, counter, "later")
	})
}

// A prepared transaction keeps its locks, and its session continues without waiting for the transaction.
func TestPostgresPrepared(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		server := harness.NewServer(t, "max_prepared_transactions = 10")
		server.Start(t)
		db, end := server.Open(t, b)
		defer end()
		db.SetMaxOpenConns(2) // conn has one, the queries of within and the counter the other
		counter := setup(t, db)
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		send := func(queries ...string) {
			t.Helper()
			for _, query := range queries {
				within(t, b, db, query, func() error {
					_, err := conn.ExecContext(t.Context(), query)
					return err
				})
			}
		}
		wantSame(t, counter, "what is prepared", func() {
			send("BEGIN", "UPDATE books SET price = 11 WHERE id = 1", "PREPARE TRANSACTION 'first'",
				"BEGIN", "UPDATE books SET price = 11 WHERE id = 2", "PREPARE TRANSACTION 'second'")
		})
		wantRaised(t, counter, "a write beside it", func() { send("UPDATE books SET price = 11 WHERE id = 3") })
		wantRaised(t, counter, "the first", func() { send("COMMIT PREPARED 'first'") })
		wantRaised(t, counter, "a write beside it", func() { send("UPDATE books SET price = 12 WHERE id = 3") })
		wantRaised(t, counter, "the second", func() { send("COMMIT PREPARED 'second'") })
	})
}

// A snapshot that is older than another session's commit causes no failure, because each connection has a separate row.
func TestPostgresSnapshot(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		counter := setup(t, db)
		for i := range 10 {
			tx := begin(t, db, sql.LevelRepeatableRead)
			var n int
			if err := tx.QueryRow("SELECT count(*) FROM books").Scan(&n); err != nil {
				t.Fatal(err)
			}
			exec(t, db, "UPDATE books SET price = price + 1 WHERE id = 1")
			db.SetMaxIdleConns(i % 2) // the next write gets a new connection, or the same one
			exec(t, db, "UPDATE books SET price = price + 1 WHERE id = 1")
			wantRaised(t, counter, "an old snapshot's write", func() {
				exec(t, tx, "UPDATE books SET price = price + 1 WHERE id = 2")
				commit(t, tx)
			})
		}
	})
}
