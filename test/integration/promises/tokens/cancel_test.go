package tokens_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestTokensCancelled(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		store := setupStore(t, db)
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := store.Issue(ended, "books"); !errors.Is(err, context.Canceled) {
			t.Errorf("Issue with an ended context: %v", err)
		}
		harness.WantLedger(t, db)

		release := hold(t, b, dsn)
		defer release()
		patient := make(chan error, 1)
		short := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			// If this call waited for the ledger's row, it would wait for ever.
			if _, err := store.Issue(ctx, "books"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Issue with a deadline: %v", err)
			}
		}
		go func() {
			_, err := store.Issue(t.Context(), "books")
			patient <- err
		}()
		// These calls share the patient call's statement, or come before or after it.
		for range 3 {
			short()
		}
		select {
		case err := <-patient:
			t.Fatalf("the patient call returned %v while the ledger was held", err)
		default:
		}
		release()
		if err := <-patient; err != nil {
			t.Errorf("the patient call: %v", err)
		}
	})
}

// A cancelled call returns its connection to the pool, even while the ledger's row is locked. On the server no session
// waits any more, and no token is taken later.
func TestTokensCancelledWhileTheyWait(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if !b.Networked() {
			t.Skip("a SQLite connection waits for its busy_timeout")
		}
		dsn := b.DSN(t)
		for name, db := range map[string]*sql.DB{"raw": b.Raw(t, dsn), "fenced": b.Fenced(t, dsn, harness.Books())} {
			t.Run(name, func(t *testing.T) {
				store := setupStore(t, db)
				before := harness.IssueToken(t, store, "books")
				release := hold(t, b, dsn)
				defer release()
				plain := b.Raw(t, dsn)
				for what, call := range map[string]func(context.Context) error{
					"Issue": func(ctx context.Context) error { _, err := store.Issue(ctx, "books"); return err },
					"Adopt": func(ctx context.Context) error {
						return store.Adopt(ctx, sqlfence.Token{Name: "books", Value: before + 100})
					},
				} {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					failed := make(chan error, 1)
					go func() { failed <- call(ctx) }()
					// The server forgets a cancellation that comes before the statement.
					harness.Eventually(t, "the statement waits", func() bool { return b.Waiting(t, plain) == 1 })
					harness.GiveUp(t, plain, func() {
						cancel()
						if err := <-failed; err == nil { // of the context, or lib/pq's own
							t.Errorf("%s succeeded", what)
						}
						harness.Eventually(t, "the connection is free", func() bool { return db.Stats().InUse == 0 })
					}, func() bool { return b.Waiting(t, plain) == 0 })
				}
				release()
				if got := harness.IssueToken(t, store, "books"); got != before+1 {
					t.Errorf("the token behind the cancelled calls is %d, want %d", got, before+1)
				}
			})
		}
	})
}

// The commit may fail after a statement's row has arrived. The row's token must not be returned, because the next
// caller gets the same token.
func TestTokensCommitFails(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		harness.EachStore(t, func(t *testing.T, b harness.Base) {
			if b.Dialect != sqlfence.Postgres {
				t.Skip("for PostgreSQL")
			}
			for _, mode := range []string{"", "simple_protocol"} {
				dsn := b.DSN(t)
				if mode != "" && b.Name == "pgx" {
					dsn += "&default_query_exec_mode=" + mode
				}
				db := b.Raw(t, dsn)
				store := setupStore(t, db)
				harness.MustExec(t, db, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''refused at commit''; END'")
				harness.MustExec(t, db, `CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON fencing_tokens
					DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
				if token, err := store.Issue(t.Context(), "books"); err == nil || !strings.Contains(err.Error(), "refused at commit") {
					t.Errorf("Issue = %v, %v; want an error: nothing was committed", token, err)
				}
				if err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 1}); err == nil {
					t.Error("Adopt succeeded, but nothing was committed")
				}
				harness.WantLedger(t, db)
			}
		})
	})
	t.Run("sqlite", func(t *testing.T) {
		harness.EachStore(t, func(t *testing.T, b harness.Base) {
			if b.Dialect != sqlfence.SQLite {
				t.Skip("for SQLite")
			}
			// In SQLite's rollback journal mode a reader delays the commit, not the write.
			dsn := "file:" + filepath.Join(t.TempDir(), "test.db")
			db := b.Raw(t, dsn)
			db.SetMaxOpenConns(1)
			harness.MustExec(t, db, "PRAGMA busy_timeout = 50")
			store := setupStore(t, db)
			harness.IssueToken(t, store, "books")

			reader, err := b.Raw(t, dsn).BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Rollback()
			var n int
			if err := reader.QueryRow("SELECT count(*) FROM fencing_tokens").Scan(&n); err != nil {
				t.Fatal(err)
			}
			if token, err := store.Issue(t.Context(), "books"); err == nil {
				t.Errorf("Issue = %v, but it was not committed", token)
			}
			if err := reader.Rollback(); err != nil {
				t.Fatal(err)
			}
			harness.WantLedger(t, db, "books=1")
			if got := harness.IssueToken(t, store, "books"); got != 2 {
				t.Errorf("token = %d, want 2", got)
			}
		})
	})
}

// If a trigger suppresses the write, Issue must return an error and must not loop forever.
func TestTokensSwallowedByTrigger(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		store := setupStore(t, db)
		if b.Dialect == sqlfence.Postgres {
			harness.MustExec(t, db, "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
			harness.MustExec(t, db, "CREATE TRIGGER swallow BEFORE INSERT ON fencing_tokens FOR EACH ROW EXECUTE FUNCTION swallow()")
		} else if b.Dialect == sqlfence.MySQL {
			t.Skip("no trigger of MySQL's can leave a row out")
		} else {
			harness.MustExec(t, db, "CREATE TRIGGER swallow BEFORE INSERT ON fencing_tokens BEGIN SELECT RAISE(IGNORE); END")
		}
		if token, err := store.Issue(t.Context(), "books"); err == nil || !strings.Contains(err.Error(), "trigger") {
			t.Errorf("Issue = %v, %v", token, err)
		}
		harness.WantLedger(t, db)
	})
}
