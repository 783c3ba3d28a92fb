package verify_test

import (
	"context"
	"database/sql"
	"log/slog"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/verify"
)

// harmless are objects that look like a way around sqlfence but aren't one.
var harmless = map[sqlfence.Dialect][]string{
	sqlfence.Postgres: {
		"CREATE VIEW dear_pens AS SELECT * FROM pens WHERE price > (SELECT max(price) FROM books) AND id IN (SELECT id FROM books)",
		"CREATE VIEW counted AS SELECT count(*) FROM books",
		"CREATE INDEX marks ON books (fence_token)", "CREATE UNIQUE INDEX titles ON books (title) INCLUDE (fence_token) WHERE price > 0 AND title <> 'fence_token'",
		"CREATE VIEW shelf AS SELECT id, price, fence_token FROM books", // registered
		"CREATE VIEW joined AS SELECT books.id FROM books JOIN pens USING (id)",
		"CREATE RULE looks AS ON DELETE TO pens DO ALSO INSERT INTO pens SELECT id + 1000, price FROM books",
		"CREATE TABLE reviews (id integer, book integer REFERENCES books ON DELETE CASCADE)", // a cascade from books
		"CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN /* UPDATE books */ INSERT INTO reviews (id) VALUES (1); RETURN NULL; END $$",
		"CREATE TRIGGER note AFTER UPDATE ON books FOR EACH ROW EXECUTE FUNCTION note()",
		"CREATE SCHEMA archive", "CREATE TABLE archive.books (id integer)", "CREATE TABLE mybooks (id integer)",
		"CREATE FUNCTION keep() RETURNS void LANGUAGE sql AS 'DELETE FROM archive.books; DELETE FROM mybooks'",
	},
	sqlfence.SQLite: {
		"CREATE VIEW shelf AS SELECT id, price FROM books",
		"CREATE INDEX marks ON books (fence_token)", "CREATE UNIQUE INDEX fence_token ON books (title) WHERE price > 0",
		"CREATE TABLE reviews (id integer, note text DEFAULT 'on conflict replace', book integer REFERENCES books ON DELETE CASCADE)",
		"CREATE TRIGGER note AFTER UPDATE OF price ON books BEGIN /* UPDATE books */ INSERT INTO reviews (id) VALUES (1); END",
		"CREATE TABLE mybooks (id integer)", "CREATE TRIGGER other AFTER INSERT ON pens BEGIN DELETE FROM mybooks; END",
	},
	sqlfence.MySQL: {
		"CREATE VIEW counted AS SELECT COUNT(*) FROM books",
		"CREATE INDEX marks ON books (fence_token)", "CREATE UNIQUE INDEX titles ON books (title)",
		"CREATE VIEW dear_pens AS SELECT * FROM pens WHERE id IN (SELECT id FROM books)",
		"CREATE TABLE reviews (id integer, book integer, FOREIGN KEY (book) REFERENCES books (id) ON DELETE CASCADE)",
		"CREATE TRIGGER note AFTER UPDATE ON books FOR EACH ROW INSERT INTO reviews (id) VALUES (1) /* UPDATE books */",
		"CREATE TABLE mybooks (id integer)", "CREATE PROCEDURE other() DELETE FROM mybooks",
	},
}

// Objects that look like a fault and are harmless give no finding.
func TestNothingToFind(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for _, query := range harmless[w.Dialect] {
			w.exec(t, query)
		}
		opts := []sqlfence.Option{harness.Books(both...)}
		if w.Dialect == sqlfence.Postgres {
			opts = append(opts, sqlfence.WithTable("shelf", sqlfence.Ledger(), sqlfence.Resource("books")))
		}
		for _, f := range w.news(t, opts...) {
			if f.Level > slog.LevelInfo && !strings.Contains(f.Problem, "is a view") {
				t.Error(f)
			}
		}
	})
}

// verify.Check waits for no writer, no writer waits for verify.Check, and the end of its context ends it.
func TestBesideWriters(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.exec(t, "INSERT INTO books (id) VALUES (1)")
		db := w.Fenced(t, w.dsn, harness.Books(both...))
		tx := harness.Begin(context.Background(), t, w.plain, sql.LevelDefault)
		if _, err := tx.Exec("UPDATE books SET price = 2"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
		defer cancel()
		if _, err := verify.Check(ctx, db); err != nil {
			t.Errorf("beside an open write: %v", err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := verify.Check(ended, db); err == nil {
			t.Error("with a context that has ended: no error")
		}
	})
}

// A temporary table hides the registered table.
func TestTemporaryTables(t *testing.T) {
	for _, b := range bases[1:4] {
		t.Run(b.Name, func(t *testing.T) {
			w := newWorld(t, b)
			db := w.Fenced(t, w.dsn, harness.Books(sqlfence.RowFence("fence_token")), sqlfence.WithoutGuards("hide a table"))
			db.SetMaxOpenConns(1)
			harness.MustExec(t, db, "CREATE TEMPORARY TABLE books (id integer, fence_token bigint NOT NULL DEFAULT 0)")
			wantOne(t, withCode(checked(t, db), "storage"), slog.LevelWarn, "storage")
		})
	}
}

// verify.OnConnect refuses connections until the database has no fault. Then it no longer checks.
func TestOnConnect(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.exec(t, "DROP TABLE fencing_tokens", "ALTER TABLE books RENAME COLUMN fence_token TO other")
		db := w.Fenced(t, w.dsn, harness.Books(both...), verify.OnConnect())
		harness.WantError(t, db.PingContext(t.Context()), sqlfence.ErrNotSetUp)
		_, err := db.ExecContext(harness.Holding(t, 1), "UPDATE books SET price = 1")
		harness.WantError(t, err, sqlfence.ErrNotSetUp)
		w.exec(t, "ALTER TABLE books RENAME COLUMN other TO fence_token")
		if err := db.PingContext(t.Context()); err != nil {
			t.Fatalf("after the repair, but for the ledger: %v", err)
		}
		store := harness.NewStore(t, db)
		if err := store.Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		token := harness.IssueToken(t, store, "books")
		if _, err := db.ExecContext(harness.Holding(t, token), "UPDATE books SET price = 1"); err != nil {
			t.Error(err)
		}
		w.exec(t, "ALTER TABLE books RENAME COLUMN fence_token TO other")
		one, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		two, err := db.Conn(t.Context())
		if err != nil {
			t.Fatalf("another connection: %v", err)
		}
		defer two.Close()
	})
}
