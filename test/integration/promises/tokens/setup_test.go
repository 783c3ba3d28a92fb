package tokens_test

import (
	"bytes"
	"crypto/rand"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

func TestTokensOnTheBlogsTable(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		if b.Dialect == sqlfence.MySQL {
			t.Skip("its names are texts, which are compared by a collation")
		}
		ctx := t.Context()
		blogTable(t, b, db)
		harness.MustExec(t, db, "INSERT INTO fencing_tokens (name, token) VALUES ('books', 1) ON CONFLICT DO NOTHING")
		harness.MustExec(t, db, "INSERT INTO fencing_tokens (name, token) VALUES ('null', NULL), ('null too', NULL)")
		var log bytes.Buffer
		store := setupStore(t, db, tokens.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if warned := strings.Contains(log.String(), "make it a bigint"); warned != (b.Dialect == sqlfence.Postgres) {
			t.Errorf("logged %q of a narrow column", &log)
		}
		if got := harness.IssueToken(t, store, "books"); got != 2 {
			t.Errorf("books = %d, want 2: its row starts with 1", got)
		}
		if got := harness.IssueToken(t, store, "pens"); got != 1 {
			t.Errorf("pens = %d, want 1", got)
		}
		if err := store.Ensure(ctx, "books", "cups", "null"); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Current(ctx, "null"); err != nil || got.Value != 0 {
			t.Errorf("Current of NULL = %v, %v; want 0", got, err)
		}
		if got := harness.IssueToken(t, store, "null"); got != 1 {
			t.Errorf("token after NULL = %d, want 1", got)
		}
		if err := store.Adopt(ctx, sqlfence.Token{Name: "null too", Value: 7}); err != nil {
			t.Fatal(err)
		}
		harness.WantLedger(t, db, "books=2", "cups=0", "null=1", "null too=7", "pens=1")

		if b.Dialect == sqlfence.Postgres {
			harness.MustExec(t, db, "UPDATE fencing_tokens SET token = 2147483647 WHERE name = 'books'")
			_, err := store.Issue(ctx, "books")
			var state interface{ SQLState() string }
			if !errors.As(err, &state) || state.SQLState() != "22003" {
				t.Errorf("Issue over 4 bytes: %v, want the database's 22003", err)
			}
			harness.WantLedger(t, db, "books=2147483647", "cups=0", "null=1", "null too=7", "pens=1")
		}
	})
}

func TestTokensSetupAtOnce(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		var stores []*tokens.Store
		for range 8 {
			other := b.Raw(t, dsn)
			if err := other.Ping(); err != nil {
				t.Fatal(err)
			}
			stores = append(stores, harness.NewStore(t, other))
		}
		for range 10 {
			start := make(chan struct{})
			var wg sync.WaitGroup
			for _, store := range append(stores, harness.NewStore(t, db)) {
				wg.Go(func() {
					<-start
					if err := store.Setup(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			close(start)
			wg.Wait()
			harness.MustExec(t, db, "DROP TABLE fencing_tokens")
		}
	})
}

func TestTokensSetupRefusesAnUnusableTable(t *testing.T) {
	for _, test := range []struct{ name, create, want string }{
		{"text token", "CREATE TABLE fencing_tokens (name varchar(255) UNIQUE, token text)", "column token is of type text"},
		{"no token", "CREATE TABLE fencing_tokens (name varchar(255) UNIQUE, value integer)", "want name and token"},
		{"no name", "CREATE TABLE fencing_tokens (resource varchar(255) UNIQUE, token integer)", "want name and token"},
		{"name not unique", "CREATE TABLE fencing_tokens (name varchar(255), token integer)", "ON CONFLICT"},
		{"unique together", "CREATE TABLE fencing_tokens (name varchar(255), token integer, UNIQUE (name, token))", "ON CONFLICT"},
		{"required column", "CREATE TABLE fencing_tokens (name varchar(255) UNIQUE, token integer, owner text NOT NULL)", "column owner needs a value"},
		{"required key", "CREATE TABLE fencing_tokens (id varchar(36) PRIMARY KEY NOT NULL, name varchar(255) UNIQUE, token integer)", "column id needs a value"},
		{"view", "CREATE VIEW fencing_tokens AS SELECT 'books' AS name, 1 AS token", "fencing_tokens can't be used"},
	} {
		t.Run(test.name, func(t *testing.T) {
			harness.EachStore(t, func(t *testing.T, b harness.Base) {
				if b.Dialect == sqlfence.MySQL {
					t.Skip("see TestTokensSetupOnMySQL")
				}
				db := b.Raw(t, b.DSN(t))
				harness.MustExec(t, db, test.create)
				err := harness.NewStore(t, db).Setup(t.Context())
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("Setup = %v, want %q", err, test.want)
				}
			})
		})
	}
}

// A role can run Setup without owning the table, and without the privilege to create tables.
func TestTokensSetupWithoutPrivileges(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("for PostgreSQL")
		}
		dsn := b.DSN(t)
		owner := b.Raw(t, dsn)
		setupStore(t, owner)
		role := "sqlfence_" + strings.ToLower(rand.Text())
		harness.MustExec(t, owner, "CREATE ROLE "+role)
		defer harness.MustExec(t, owner, "DROP OWNED BY "+role+"; DROP ROLE "+role)
		harness.MustExec(t, owner, "DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO "+role+"', current_schema()); END $$")

		app, err := sql.Open(b.DriverName, dsn+"&role="+role)
		if err != nil {
			t.Fatal(err)
		}
		defer app.Close()
		store := harness.NewStore(t, app)
		harness.MustExec(t, owner, "GRANT SELECT ON fencing_tokens TO "+role)
		if err := store.Setup(t.Context()); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("Setup without the right to write: %v", err)
		}
		harness.MustExec(t, owner, "GRANT INSERT, UPDATE ON fencing_tokens TO "+role)
		if err := store.Setup(t.Context()); err != nil {
			t.Errorf("Setup without the right to create: %v", err)
		}
		if got := harness.IssueToken(t, store, "books"); got != 1 {
			t.Errorf("token = %d, want 1", got)
		}
	})
}
