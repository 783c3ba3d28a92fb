package ledgerfunction_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

const (
	name    = "sqlfence_newest_v2"
	trigger = "sqlfence_turn_v1"
)

// eachPostgres runs test on the drivers of PostgreSQL.
func eachPostgres(t *testing.T, test func(t *testing.T, b harness.Base)) {
	t.Helper()
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.AsksByFunction() {
			t.Skip("no function asks the ledger there")
		}
		test(t, b)
	})
}

// installed returns a shop whose ledger has the function, at token 8, and a pool on it with a counter of statements.
func installed(t *testing.T, b harness.Base) (*harness.Shop, *sql.DB, *harness.Counter) {
	t.Helper()
	sh := harness.NewShop(t, b, sqlfence.Ledger())
	sh.Exec(t, tokens.LedgerFunction())
	sh.Reset(t, 8)
	db, count := b.Counted(t, sh.Source, harness.Books())
	if err := harness.NewStore(t, db).Setup(t.Context()); err != nil { // Setup tells the pool that the function exists
		t.Fatal(err)
	}
	count.Reset()
	return sh, db, count
}

// wantCalled fails the test unless the last sent statement calls the function.
func wantCalled(t *testing.T, count *harness.Counter) {
	t.Helper()
	texts := count.Texts()
	if len(texts) == 0 || !strings.Contains(texts[len(texts)-1], name) {
		t.Errorf("sent %q, want the function", texts)
	}
	count.Reset()
}

// Setup installs the function, and open pools use it. A new pool writes nothing unless the function is complete.
func TestFunctionIsRequired(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b)
		sh.Exec(t, "DROP FUNCTION IF EXISTS "+name)
		sh.Reset(t, 8)
		db, count := b.Counted(t, sh.Source, harness.Books())
		write(t, db, 8, sqlfence.ErrNotSetUp)
		if err := harness.NewStore(t, sh.Plain).Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		write(t, db, 8, nil)
		wantCalled(t, count)
		write(t, db, 7, sqlfence.ErrStale)
		write(t, db, 9, sqlfence.ErrNotIssued)
		sh.Exec(t, "DELETE FROM fencing_tokens")
		write(t, db, 8, sqlfence.ErrUnknownName)

		for _, gone := range []string{
			"ALTER TABLE fencing_tokens DISABLE TRIGGER " + trigger,
			"ALTER TABLE fencing_tokens ENABLE TRIGGER " + trigger, // it doesn't fire in each session_replication_role
			"DROP TRIGGER " + trigger + " ON fencing_tokens",
			"DROP FUNCTION " + name,
		} {
			sh.Exec(t, tokens.LedgerFunction())
			sh.Reset(t, 8)
			write(t, b.Fenced(t, sh.Source, harness.Books()), 8, nil)
			sh.Exec(t, gone)
			write(t, b.Fenced(t, sh.Source, harness.Books()), 8, sqlfence.ErrNotSetUp)
		}
	})
}

// write updates a book with a token.
func write(t *testing.T, db harness.Runner, token int64, want error) {
	t.Helper()
	_, err := db.ExecContext(harness.Holding(t, token), harness.SetPrice, 30, 1)
	if !errors.Is(err, want) {
		t.Errorf("token %d: %v, want %v", token, err, want)
	}
}

// Without the function no write succeeds, however it is sent, until Setup has installed it again.
func TestFunctionThatIsDropped(t *testing.T) {
	for what, drop := range map[string]string{
		"dropped":        "DROP FUNCTION " + name,
		"renamed":        "ALTER FUNCTION " + name + " RENAME TO other",
		"not executable": "REVOKE EXECUTE ON FUNCTION " + name + " FROM PUBLIC",
	} {
		t.Run(what, func(t *testing.T) {
			eachPostgres(t, func(t *testing.T, b harness.Base) {
				for way, run := range harness.Ways {
					sh, db, count := installed(t, b)
					if what == "not executable" {
						db = asRole(t, sh, db)
					}
					write(t, db, 8, nil)
					wantCalled(t, count)
					sh.Exec(t, drop)
					query := harness.SetPrice
					if strings.Contains(way, "query") {
						query += " RETURNING id"
					}
					for range 2 {
						err := run(harness.Holding(t, 8), db, query, 30, 1)
						if !errors.Is(err, sqlfence.ErrNotSetUp) {
							t.Errorf("%s: %v", way, err)
						}
					}
					sh.Exec(t, tokens.LedgerFunction())
					sh.Exec(t, "GRANT EXECUTE ON FUNCTION "+name+" TO PUBLIC")
					count.Reset()
					write(t, db, 8, nil)
					wantCalled(t, count)
					write(t, db, 7, sqlfence.ErrStale)
				}
			})
		})
	}
}

// The function calls another one while the session plans. Without that one no new session writes.
func TestFunctionThatIsCalledByTheFunction(t *testing.T) {
	for _, drop := range []string{
		"DROP FUNCTION " + sqltext.LedgerTurns, "ALTER FUNCTION " + sqltext.LedgerTurns + " RENAME TO other",
		"REVOKE EXECUTE ON FUNCTION " + sqltext.LedgerTurns + " FROM PUBLIC",
	} {
		t.Run(drop, func(t *testing.T) {
			eachPostgres(t, func(t *testing.T, b harness.Base) {
				sh, db, _ := installed(t, b)
				if strings.HasPrefix(drop, "REVOKE") {
					db = asRole(t, sh, db)
				} else {
					db.SetMaxIdleConns(0) // each write has a new session
					write(t, db, 8, nil)  // for a minute the pool takes the function for complete
				}
				sh.Exec(t, drop)
				write(t, db, 8, sqlfence.ErrNotSetUp)
				sh.Exec(t, tokens.LedgerFunction())
				sh.Exec(t, "GRANT EXECUTE ON FUNCTION "+sqltext.LedgerTurns+" TO PUBLIC")
				write(t, db, 8, nil)
				write(t, db, 7, sqlfence.ErrStale)
			})
		})
	}
}

// asRole limits db to one connection, with a role that has only a writer's privileges, and returns db.
func asRole(t *testing.T, sh *harness.Shop, db *sql.DB) *sql.DB {
	t.Helper()
	schema := schemaOf(t, sh)
	role := schema + "_role"
	for _, query := range []string{
		"CREATE ROLE " + role, "GRANT USAGE ON SCHEMA " + schema + " TO " + role,
		"GRANT SELECT, UPDATE ON books, fencing_tokens TO " + role,
	} {
		sh.Exec(t, query)
	}
	t.Cleanup(func() {
		for _, query := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			if _, err := sh.Plain.Exec(query); err != nil {
				t.Error(err)
			}
		}
	})
	return inRole(t, sh, db)
}

// inRole gives another pool the role of asRole.
func inRole(t *testing.T, sh *harness.Shop, db *sql.DB) *sql.DB {
	t.Helper()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("SET ROLE " + schemaOf(t, sh) + "_role"); err != nil {
		t.Fatal(err)
	}
	return db
}

// If the function is dropped in a transaction, the error says so, and Retry runs the transaction again, because another
// schema may have the function by then.
func TestFunctionThatIsDroppedInATransaction(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		for _, prepared := range []bool{false, true} {
			sh, db, _ := installed(t, b)
			runs := 0
			err := sqlfence.Retry(harness.Holding(t, 8), db, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
				switch runs++; runs {
				case 1:
					sh.Exec(t, "DROP FUNCTION "+name)
				case 2:
					sh.Exec(t, tokens.LedgerFunction())
				}
				if !prepared {
					_, err := tx.ExecContext(ctx, harness.SetPrice, 30, 1)
					return err
				}
				_, err := harness.Prepared(ctx, tx, harness.SetPrice, func(s *sql.Stmt) (int64, error) { return harness.Affected(s.ExecContext(ctx, 30, 1)) })
				return err
			})
			if err != nil || runs != 2 {
				t.Errorf("prepared %v: %v after %d runs, want none after 2", prepared, err, runs)
			}
		}
	})
}

// A prepared statement works again after the dropped function is installed again.
func TestFunctionComesAndGoesUnderAPreparedStatement(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh, db, _ := installed(t, b)
		db.SetMaxOpenConns(1)
		stmt, err := db.Prepare(harness.SetPrice)
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		for _, change := range []string{"SELECT 1", "DROP FUNCTION " + name, "ALTER TABLE fencing_tokens DISABLE TRIGGER " + trigger} {
			sh.Exec(t, change)
			_, err := stmt.ExecContext(harness.Holding(t, 8), 30, 1)
			if gone := strings.HasPrefix(change, "DROP"); gone != errors.Is(err, sqlfence.ErrNotSetUp) || !gone && err != nil {
				t.Errorf("after %.30q: %v", change, err)
			}
			sh.Exec(t, tokens.LedgerFunction())
			if _, err := stmt.ExecContext(harness.Holding(t, 8), 30, 1); err != nil {
				t.Errorf("after %.30q, and Setup: %v", change, err)
			}
			_, err = stmt.ExecContext(harness.Holding(t, 7), 30, 1)
			harness.WantStale(t, err, 7, 8)
		}
	})
}

// The server's planner settings don't change the results.
func TestFunctionUnderSettings(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh, db, count := installed(t, b)
		db.SetMaxOpenConns(1)
		for _, set := range []string{
			"SET plan_cache_mode = force_generic_plan", "SET plan_cache_mode = force_custom_plan", parallel(t, sh),
			"SET jit_above_cost = 0", "SET enable_indexscan = off", "SET session_replication_role = replica", "SET search_path = pg_catalog, " + schemaOf(t, sh),
		} {
			harness.MustExec(t, db, set)
			stmt, err := db.Prepare(harness.SetPrice)
			if err != nil {
				t.Fatal(err)
			}
			for range 7 { // a generic plan comes after five custom ones
				write(t, db, 8, nil)
				wantCalled(t, count)
				if _, err := stmt.ExecContext(harness.Holding(t, 8), 30, 1); err != nil {
					t.Errorf("%s: %v", set, err)
				}
				_, err := stmt.ExecContext(harness.Holding(t, 7), 30, 1)
				harness.WantStale(t, err, 7, 8)
			}
			if err := harness.CloseStmt(stmt); err != nil {
				t.Error(err)
			}
		}
	})
}

// parallel returns the setting that makes plans use parallel workers. Its name depends on the version.
func parallel(t *testing.T, sh *harness.Shop) (set string) {
	t.Helper()
	const query = "SELECT 'SET ' || name || ' = on' FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')"
	if err := sh.Plain.QueryRow(query).Scan(&set); err != nil {
		t.Fatal(err)
	}
	return set
}

func schemaOf(t *testing.T, sh *harness.Shop) (schema string) {
	t.Helper()
	if err := sh.Plain.QueryRow("SELECT current_schema()").Scan(&schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// Writers of one name don't lock the ledger's row, and write little WAL.
func TestFunctionLocksNoRow(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh, db, _ := installed(t, b)
		const xmax = "SELECT ctid::text || ' ' || xmax FROM fencing_tokens"
		var before, after string
		if err := sh.Plain.QueryRow(xmax).Scan(&before); err != nil {
			t.Fatal(err)
		}
		var open []*sql.Tx
		for id := range 3 {
			tx, err := db.BeginTx(harness.Holding(t, 8), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(harness.Holding(t, 8), harness.SetPrice, 30, id+1); err != nil {
				t.Error(err)
			}
			open = append(open, tx)
		}
		for _, tx := range open {
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
		}
		if err := sh.Plain.QueryRow(xmax).Scan(&after); err != nil {
			t.Fatal(err)
		}
		if after != before {
			t.Errorf("the ledger's row was %s, now it is %s", before, after)
		}
		plain := walOf(t, sh.Plain, "UPDATE books SET price = 40 WHERE id = 1")
		guarded := walOf(t, db, "UPDATE books SET price = 40 WHERE id = 1")
		if guarded > plain+32 {
			t.Errorf("a guarded write leaves %d bytes of WAL, a plain one %d", guarded, plain)
		}
	})
}

// walOf returns the bytes of WAL that a statement's second execution writes, without the image of a whole page.
func walOf(t *testing.T, db *sql.DB, query string) (bytes int) {
	t.Helper()
	for range 2 {
		rows, err := db.QueryContext(harness.Holding(t, 8), "EXPLAIN (ANALYZE, WAL, FORMAT JSON) "+query)
		if err != nil {
			t.Fatal(err)
		}
		var plan string
		for rows.Next() {
			if err := rows.Scan(&plan); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
		bytes = walBytes(t, plan)
	}
	return bytes
}

// A connection looks for the function once: before its first guarded write, or before the BEGIN of a transaction that
// may contain one.
func TestFunctionIsAskedForOnce(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh, _, _ := installed(t, b)
		questions := func(want int, rules ...sqlfence.Rule) {
			t.Helper()
			for _, inTx := range []bool{false, true} {
				count := new(harness.Counter)
				db, err := sqlfence.OpenDB(b.Counting(t, sh.Source, count), sqlfence.WithDialect(b.Dialect), harness.Books(rules...))
				harness.CloseAtEnd(t, db, err)
				db.SetMaxOpenConns(1)
				for range 3 {
					if !inTx {
						write(t, db, 8, nil)
						continue
					}
					tx, err := db.Begin()
					if err != nil {
						t.Fatal(err)
					}
					write(t, tx, 8, nil)
					if err := tx.Commit(); err != nil {
						t.Error(err)
					}
				}
				asked := slices.DeleteFunc(count.Texts(), func(text string) bool { return !strings.Contains(text, "pg_proc") })
				if len(asked) != want {
					t.Errorf("in a transaction %v: asked %d times, want %d", inTx, len(asked), want)
				}
			}
		}
		questions(1)
		questions(0, sqlfence.RowFence("fence_token")) // RowFence alone needs no function
	})
}

// Looking for the function takes most of the time of a fresh connection's first query. So a pool that has found the
// function doesn't look again on each connection. A fresh connection sends one query, and the write.
func TestFreshConnectionsDontLookForTheFunction(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh, _, _ := installed(t, b)
		count := new(harness.Counter)
		db, err := sqlfence.OpenDB(b.Counting(t, sh.Source, count), sqlfence.WithDialect(b.Dialect), harness.Books())
		harness.CloseAtEnd(t, db, err)
		db.SetMaxIdleConns(-1)
		const fresh = 5
		for range fresh {
			write(t, db, 8, nil)
		}
		sent, looked := 0, 0
		for _, text := range count.Texts() {
			sent++
			if strings.Contains(text, "pg_proc") {
				looked++
			}
		}
		if sent != 2*fresh || looked != 1 {
			t.Errorf("%d fresh connections have sent %d statements, and looked for the function %d times; want %d and 1",
				fresh, sent, looked, 2*fresh)
		}
	})
}

// walBytes returns the WAL bytes of the plan's top node.
func walBytes(t *testing.T, plan string) (bytes int) {
	t.Helper()
	var explained []struct {
		Plan struct {
			WAL int `json:"WAL Bytes"`
		}
	}
	if err := json.Unmarshal([]byte(plan), &explained); err != nil || len(explained) != 1 {
		t.Fatalf("%v: %s", err, plan)
	}
	return explained[0].Plan.WAL
}

// A write that was planned before another connection of its pool found the function calls the function in the schema
// that this connection found.
func TestFunctionThatAnotherConnectionHasFound(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b, sqlfence.Ledger())
		home := schemaOf(t, sh) + "_home"
		sh.Exec(t, "CREATE SCHEMA "+home)
		t.Cleanup(func() { _, _ = sh.Plain.Exec("DROP SCHEMA " + home + " CASCADE") })
		named := sqlfence.WithSchema(home)
		if err := harness.NewStore(t, b.Fenced(t, sh.Source, harness.Books(), named)).Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		sh.Exec(t, "INSERT INTO "+home+".fencing_tokens VALUES ('books', 8)")
		sh.Exec(t, "DROP FUNCTION IF EXISTS "+name)
		var db *sql.DB
		var asked atomic.Bool
		db = b.Fenced(t, sh.Source, harness.Books(), named, sqlfence.WithTokenSource(
			func(context.Context, []string) ([]sqlfence.Token, error) {
				if !asked.Swap(true) {
					write(t, db, 8, nil)
				}
				return []sqlfence.Token{{Name: "books", Value: 8}}, nil
			}))
		if _, err := db.Exec(harness.SetPrice, 30, 1); err != nil {
			t.Error(err)
		}
	})
}

// A statement that doesn't query the ledger may fail with an error about the function's schema. This is the
// application's.
func TestErrorThatIsNotAboutTheFunction(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh, _, _ := installed(t, b)
		schema := schemaOf(t, sh)
		sh.Exec(t, "CREATE TABLE inks (id integer, fence_token bigint NOT NULL DEFAULT 0)")
		sh.Exec(t, "GRANT ALL ON inks TO PUBLIC")
		inks := sqlfence.WithTable("inks", sqlfence.Resource("books"), sqlfence.RowFence("fence_token"))
		db := asRole(t, sh, b.Fenced(t, sh.Source, harness.Books(sqlfence.Ledger()), inks))
		write(t, db, 8, nil)
		var role string
		if err := db.QueryRow("SELECT current_user").Scan(&role); err != nil {
			t.Fatal(err)
		}
		sh.Exec(t, "REVOKE USAGE ON SCHEMA "+schema+" FROM "+role)
		_, err := db.ExecContext(harness.Holding(t, 8), "UPDATE "+schema+".inks SET id = 2")
		passing := (interface{ Temporary() bool })(nil)
		if err == nil || errors.Is(err, sqlfence.ErrNotSetUp) || errors.As(err, &passing) && passing.Temporary() {
			t.Errorf("%v, want that the schema is denied", err)
		}
	})
}
