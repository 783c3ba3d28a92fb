package guarantees_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ngrok/sqlmw"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// Through a fenced database only sqlfence's packages can write to the tables fencing_tokens, fencing_leases and
// rowlocks, define them, or create tables of these names that a session finds first.

// ownTables are these tables, each with a column for a write.
var ownTables = map[string]string{"fencing_tokens": "token", "fencing_leases": "token", "rowlocks": "expiry"}

// ownWrites write to the table @, whose column # they set. ownDefinitions change the definition of @, or define another
// table of this name. The bare driver runs them all.
var (
	ownWrites = map[sqlfence.Dialect][]string{
		sqlfence.Postgres: {
			"UPDATE @ SET # = #", `UPDATE ONLY "@" AS t SET # = #`, `UPDATE U&"@" SET # = #`, "DELETE FROM @",
			"INSERT INTO @ SELECT * FROM @ ON CONFLICT DO NOTHING", "WITH w AS (DELETE FROM @ RETURNING 1) SELECT 1", "EXPLAIN ANALYZE DELETE FROM @",
			"MERGE INTO @ AS t USING (SELECT 1) AS s ON true WHEN MATCHED THEN DELETE", "TRUNCATE @",
			"COPY (DELETE FROM @ RETURNING 1) TO STDOUT", "DO $$BEGIN DELETE FROM @; END$$", "SELECT 1; DELETE FROM @",
		},
		sqlfence.SQLite: {
			"UPDATE @ SET # = #", `UPDATE "@" AS t SET # = #`, "UPDATE '@' SET # = #", "UPDATE main.[@] SET # = #", "DELETE FROM @",
			"INSERT INTO @ SELECT * FROM @ WHERE 0", "REPLACE INTO @ SELECT * FROM @", "WITH w AS (SELECT 1) DELETE FROM @",
		},
		sqlfence.MySQL: {
			"UPDATE @ SET # = #", "UPDATE `@` AS t SET # = #", "UPDATE LOW_PRIORITY IGNORE @ SET # = #", "UPDATE @ AS t, books SET t.# = t.#",
			"UPDATE books JOIN @ AS t SET t.# = t.#", "DELETE FROM @", "DELETE t FROM @ AS t JOIN books", "DELETE FROM t USING @ AS t",
			"INSERT INTO @ SELECT * FROM @ LIMIT 0", "REPLACE INTO @ SELECT * FROM @", "TRUNCATE @",
		},
	}
	ownDefinitions = map[sqlfence.Dialect][]string{
		sqlfence.Postgres: {
			"DROP TABLE @", "ALTER TABLE @ RENAME TO old", "ALTER TABLE @ ALTER # SET DEFAULT NULL", "ALTER TABLE spare RENAME TO @",
			"CREATE TEMP TABLE @ AS SELECT 'books' AS name, 1::bigint AS token", "CREATE TEMP VIEW @ AS SELECT 'books' AS name, 1::bigint AS token",
			"SELECT 'books' AS name, 1::bigint AS token INTO TEMP @", "WITH w AS (SELECT 1) SELECT * INTO TEMP @ FROM w",
			"CREATE VIEW over_it AS SELECT * FROM @", "CREATE RULE r AS ON UPDATE TO @ DO INSTEAD NOTHING", "CREATE TABLE child () INHERITS (@)",
			"CREATE INDEX i ON @ (#)", "CREATE SCHEMA sqlfence_shadow CREATE TABLE @ (name text)",
		},
		sqlfence.SQLite: {
			"DROP TABLE @", "ALTER TABLE @ RENAME TO old", "ALTER TABLE spare RENAME TO '@'",
			"CREATE TEMP TABLE @ AS SELECT 'books' AS name, 1 AS token", "CREATE TEMP VIEW [@] AS SELECT 'books' AS name, 1 AS token",
			"CREATE VIEW over_it AS SELECT * FROM @", "CREATE TRIGGER t AFTER UPDATE ON books BEGIN DELETE FROM @; END", "CREATE INDEX i ON @ (#)",
		},
		sqlfence.MySQL: {
			"DROP TABLE @", "ALTER TABLE @ RENAME TO old", "ALTER TABLE spare RENAME TO @", "RENAME TABLE @ TO old", "RENAME TABLE spare TO @",
			"CREATE TEMPORARY TABLE @ AS SELECT 'books' AS name, 1 AS token", "CREATE TEMPORARY TABLE `@` (name varchar(9), token bigint)",
			"CREATE VIEW over_it AS SELECT * FROM @", "CREATE TRIGGER t AFTER UPDATE ON books FOR EACH ROW DELETE FROM @", "CREATE INDEX i ON @ (#)",
		},
	}
)

// ownShop is a shop with all of these tables, and with a newer token than 8.
func ownShop(t *testing.T, b harness.Base) *harness.Shop {
	t.Helper()
	sh := harness.Setting{Base: b}.Shop(t, sqlfence.Ledger())
	harness.NewLeases(t, sh.Plain)
	m, err := rowlock.NewManager(sh.Plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	sh.Exec(t, "CREATE TABLE spare (name text, token bigint)")
	sh.Reset(t, 9)
	return sh
}

func TestG8OwnTablesAreNotWritten(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := ownShop(t, b)
		for name, db := range map[string]*sql.DB{"books registered": sh.DB, "nothing registered": b.Fenced(t, sh.Source)} {
			for table, column := range ownTables {
				for _, s := range slices.Concat(ownWrites[b.Dialect], ownDefinitions[b.Dialect]) {
					query := strings.NewReplacer("@", table, "#", column).Replace(s)
					for form, send := range map[string]func(context.Context) error{
						"exec":     func(ctx context.Context) error { _, err := db.ExecContext(ctx, query); return err },
						"query":    func(ctx context.Context) error { _, err := harness.Returned(db.QueryContext(ctx, query)); return err },
						"prepared": func(ctx context.Context) error { _, err := db.PrepareContext(ctx, query); return err },
					} {
						err := send(harness.Holding(t, 9))
						var refused *sqlfence.UnguardableError
						if !errors.As(err, &refused) || refused.Reason == "" {
							t.Errorf("%s, %s, %s: %v, want ErrUnguardable", name, query, form, err)
						} else if named := !strings.HasPrefix(s, "DO") && !strings.HasPrefix(s, "PRAGMA"); named && refused.Table != table {
							t.Errorf("%s, %s, %s: table %q", name, query, form, refused.Table)
						}
					}
				}
			}
		}
		unchanged := sh.Unchanged(t)
		_, err := sh.DB.ExecContext(harness.Holding(t, 8), "UPDATE books SET price = 30")
		harness.WantStale(t, err, 8, 9)
		unchanged()
	})
}

// The statements are real: the bare driver runs each of them.
func TestG8OwnTablesAreWrittenByTheBareDriver(t *testing.T) {
	harness.EachDriver(t, func(t *testing.T, b harness.Base) {
		for _, s := range slices.Concat(ownWrites[b.Dialect], ownDefinitions[b.Dialect]) {
			if strings.HasPrefix(s, "COPY") || strings.Contains(s, "SCHEMA") {
				continue // drivers have functions of their own for COPY, and no test would drop the schema
			}
			sh := ownShop(t, b)
			if b.Dialect == sqlfence.Postgres && harness.Lacks(t, sh.Plain, s) {
				continue
			}
			if strings.Contains(s, "TABLE spare") {
				sh.Exec(t, "DROP TABLE fencing_tokens")
			}
			sh.Exec(t, strings.NewReplacer("@", "fencing_tokens", "#", "token").Replace(s))
		}
	})
}

func TestG8OwnTablesAreWrittenUnderBypass(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := ownShop(t, b)
		var events []sqlfence.Event
		db := b.Fenced(t, sh.Source, sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { events = append(events, e) }))
		ctx := sqlfence.Bypass(t.Context(), "repair")
		for _, query := range []string{"UPDATE fencing_tokens SET token = 12 WHERE name = 'books'", "DELETE FROM rowlocks", "DROP TABLE fencing_leases"} {
			events = nil
			if _, err := db.ExecContext(ctx, query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
			if len(events) != 1 || events[0].Kind != sqlfence.Bypassed {
				t.Errorf("%s: events %v, want one Bypassed", query, events)
			}
		}
		_, err := sh.DB.ExecContext(harness.Holding(t, 11), "UPDATE books SET price = 30")
		harness.WantStale(t, err, 11, 12)
	})
}

// In Observe mode a write to sqlfence's tables passes and is reported, as every write that Enforce mode would refuse.
func TestG8OwnTablesInObserveMode(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := ownShop(t, b)
		var events []sqlfence.Event
		db := b.Fenced(t, sh.Source, sqlfence.WithMode(sqlfence.Observe),
			sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { events = append(events, e) }))
		if _, err := db.ExecContext(t.Context(), "UPDATE fencing_tokens SET token = 12"); err != nil {
			t.Error(err)
		}
		if len(events) != 1 || events[0].Kind != sqlfence.WouldRefuse || !errors.Is(events[0].Err, sqlfence.ErrUnguardable) {
			t.Errorf("events %v, want one WouldRefuse with ErrUnguardable", events)
		}
	})
}

func TestG8OwnTablesAreRead(t *testing.T) {
	reads := []string{
		"SELECT token FROM fencing_tokens WHERE name = 'books'", "WITH w AS (SELECT * FROM fencing_tokens) SELECT token FROM w",
		"WITH fencing_tokens AS (SELECT 9 AS token) SELECT token FROM fencing_tokens",
	}
	locking := []string{
		"SELECT token FROM fencing_tokens WHERE name = 'books' FOR UPDATE", "TABLE fencing_tokens", "SELECT count(*) FROM rowlocks, fencing_leases",
		"EXPLAIN ANALYZE SELECT * FROM fencing_tokens",
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := ownShop(t, b)
		queries := reads
		if b.Dialect == sqlfence.Postgres {
			queries = slices.Concat(reads, locking)
		}
		for _, query := range queries {
			if n, err := harness.Returned(b.Fenced(t, sh.Source).QueryContext(t.Context(), query)); n == 0 || err != nil {
				t.Errorf("%s: %d rows, %v", query, n, err)
			}
		}
		_, err := sh.DB.ExecContext(harness.Holding(t, 9), "WITH fencing_tokens AS (SELECT 'books' AS name, 9 AS token) UPDATE books SET price = 30")
		harness.WantError(t, err, sqlfence.ErrUnguardable)
	})
}

// All functions of the packages work on the same fenced database, without an entry in any log.
func TestG8PackagesWriteToTheirTables(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.Setting{Base: b}.Shop(t)
		sh.Exec(t, "DROP TABLE fencing_tokens")
		sh.Exec(t, "CREATE TABLE invoice (id integer PRIMARY KEY, total integer, serial bigint NOT NULL DEFAULT 1, editedby text, editedsince "+
			map[sqlfence.Dialect]string{sqlfence.Postgres: "timestamptz, editedexpiry timestamptz)", sqlfence.SQLite: "bigint, editedexpiry bigint)", sqlfence.MySQL: "bigint, editedexpiry bigint)"}[b.Dialect])
		sh.Exec(t, "INSERT INTO invoice (id, total) VALUES (7, 10)")
		var told strings.Builder
		db := b.Fenced(t, sh.Source, harness.Books(sqlfence.Ledger()), sqlfence.WithTable("invoice", sqlfence.RowFence("fence")),
			sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { fmt.Fprintln(&told, e.Kind, e.Query) }),
			sqlfence.WithLogger(slog.New(slog.NewTextHandler(&told, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		must := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if told.Len() > 0 {
				t.Errorf("%s told the log: %s", what, told.String())
				told.Reset()
			}
		}
		useTokens(t, db, must)
		useLeases(t, db, must)
		useRowLocks(t, db, must)
	})
}

func useTokens(t *testing.T, db *sql.DB, must func(what string, err error)) {
	ctx := t.Context()
	store, err := tokens.New(db)
	must("new store", err)
	must("setup", store.Setup(ctx))
	must("ensure", store.Ensure(ctx, "books", "pens"))
	token, err := store.Issue(ctx, "books")
	must("issue", err)
	must("adopt", store.Adopt(ctx, sqlfence.Token{Name: "pens", Value: 7}))
	_, err = store.Current(ctx, "pens")
	must("current", err)
	if _, err := db.ExecContext(sqlfence.WithFence(ctx, token), "INSERT INTO books (id) VALUES (1)"); err != nil {
		t.Errorf("a write with the token issued: %v", err)
	}
	_, err = store.Rotate(ctx, "pens")
	must("rotate", err)
}

func useLeases(t *testing.T, db *sql.DB, must func(what string, err error)) {
	ctx := t.Context()
	leases, err := lease.New(db, harness.Patient())
	must("new leases", err)
	must("setup of leases", leases.Setup(ctx))
	held, ok, err := leases.TryAcquire(ctx, "jobs")
	must("acquire", err)
	if !ok {
		t.Fatal("the lease is another's")
	}
	must("extend", held.Extend(ctx, 2*time.Hour))
	_, err = leases.List(ctx)
	must("list", err)
	must("release", held.Release(ctx))
	_, err = leases.Sweep(ctx)
	must("sweep", err)
}

func useRowLocks(t *testing.T, db *sql.DB, must func(what string, err error)) {
	ctx := t.Context()
	m, err := rowlock.NewManager(db)
	must("new manager", err)
	must("setup of the manager", m.Setup(ctx))
	_, err = m.Locks(ctx, rowlock.Filter{})
	must("locks", err)
	must("heartbeat", m.Heartbeat(ctx, "s1"))
	invoice, err := rowlock.New(db, "invoice", rowlock.WithManager(m))
	must("new table", err)
	ada := rowlock.Edit{ID: 7, Serial: 1, User: "ada", Session: "s1"}
	_, err = invoice.Request(ctx, ada)
	must("request", err)
	_, err = invoice.Renew(ctx, ada)
	must("renew", err)
	must("release", invoice.Release(ctx, 7, "ada"))
	_, err = invoice.Request(ctx, ada)
	must("request again", err)
	n, err := m.FreeSession(ctx, "s1")
	must("free", err)
	if n != 1 {
		t.Errorf("freed %d, want 1", n)
	}
}

// A contextSpy is a tracer beneath sqlfence that keeps the contexts of all calls.
type contextSpy struct {
	sqlmw.NullInterceptor
	seen []context.Context
}

func (s *contextSpy) ConnBeginTx(ctx context.Context, c driver.ConnBeginTx, opts driver.TxOptions) (context.Context, driver.Tx, error) {
	s.seen = append(s.seen, ctx)
	return s.NullInterceptor.ConnBeginTx(ctx, c, opts)
}

func (s *contextSpy) ConnExecContext(ctx context.Context, c driver.ExecerContext, query string, args []driver.NamedValue) (driver.Result, error) {
	s.seen = append(s.seen, ctx)
	return s.NullInterceptor.ConnExecContext(ctx, c, query, args)
}

func (s *contextSpy) ConnQueryContext(ctx context.Context, c driver.QueryerContext, query string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	s.seen = append(s.seen, ctx)
	return s.NullInterceptor.ConnQueryContext(ctx, c, query, args)
}

// Only sqlfence's packages can write with the contexts by which they send statements. A tracer or an observer sees
// these contexts, but a statement that the tracer or observer sends with such a context is refused.
func TestG8ContextsOfThePackagesWriteNothingElse(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := ownShop(t, b)
		sh.Exec(t, "INSERT INTO books (id) VALUES (70)")
		spy := new(contextSpy)
		var observed []context.Context
		d, err := sqlfence.WrapDriver(sqlmw.Driver(sh.Plain.Driver(), spy), harness.Books(sqlfence.Ledger()),
			sqlfence.WithObserver(func(ctx context.Context, e sqlfence.Event) {
				if e.Kind == sqlfence.Bypassed {
					observed = append(observed, ctx)
				}
			}))
		if err != nil {
			t.Fatal(err)
		}
		c, err := d.(driver.DriverContext).OpenConnector(sh.Source)
		if err != nil {
			t.Fatal(err)
		}
		db := harness.CloseAtEnd(t, sql.OpenDB(c), nil)

		store := harness.NewStore(t, db)
		harness.IssueToken(t, store, "books")
		_, err = store.Repair(t.Context(), 20)
		if err := errors.Join(store.Ensure(t.Context(), "pens"), err); err != nil {
			t.Fatal(err)
		}
		leases := harness.NewLeases(t, db)
		held := harness.MustAcquire(t, leases, "jobs")
		spy.seen = append(spy.seen, held.Context())
		harness.MustRelease(t, held)
		m, err := rowlock.NewManager(db)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Locks(t.Context(), rowlock.Filter{}); err != nil {
			t.Fatal(err)
		}
		seen := slices.Clone(spy.seen)
		harness.MustExec(t, db, "DELETE FROM books WHERE id = 0") // the application's Bypass: its tracer may use it
		if len(seen) < 8 || len(observed) != 1 {
			t.Fatalf("%d contexts seen, and %d by the observer", len(seen), len(observed))
		}
		seen = append(seen, observed...)
		unchanged := sh.Unchanged(t)
		for i, ctx := range seen {
			for _, query := range []string{"UPDATE books SET price = 77", "DELETE FROM fencing_tokens", "DELETE FROM rowlocks"} {
				if _, err := db.ExecContext(context.WithoutCancel(ctx), query); !errors.Is(err, sqlfence.ErrUnguardable) && !errors.Is(err, sqlfence.ErrNoFence) {
					t.Errorf("context %d of %d, %s: %v", i, len(seen), query, err)
				}
			}
		}
		unchanged()
	})
}

func TestG8OwnTablesCanNotBeRegistered(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for table := range ownTables {
			for _, name := range []string{table, strings.ToUpper(table), "shop." + table, `"` + table + `"`} {
				if _, err := sqlfence.Open(b.DriverName, "", sqlfence.WithTable(name)); err == nil || !strings.Contains(err.Error(), table) {
					t.Errorf("WithTable(%q): %v, want an error that names it", name, err)
				}
			}
		}
	})
}
