package ledgerfunction_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// others change tokens by plain SQL, without taking the ledger's turn.
var others = []string{
	"UPDATE fencing_tokens SET token = token + 1 WHERE name = 'books'",
	"INSERT INTO fencing_tokens VALUES ('books', 1) ON CONFLICT (name) DO UPDATE SET token = fencing_tokens.token + 1",
	"MERGE INTO fencing_tokens AS t USING (SELECT 'books' AS name) AS n ON n.name = t.name WHEN MATCHED THEN UPDATE SET token = 9",
	"DROP TABLE fencing_tokens",
	"ALTER TABLE fencing_tokens DISABLE TRIGGER ALL",
}

// losing are statements that lose a token. The ledger's trigger, unless disabled, refuses these statements.
var losing = []string{
	"DELETE FROM fencing_tokens",
	"UPDATE fencing_tokens SET name = 'pens' WHERE name = 'books'",
	"WITH moved AS (DELETE FROM fencing_tokens RETURNING name, token) SELECT count(*) FROM moved",
}

// A write holds off those statements until its transaction ends, at every isolation level, under any
// session_replication_role, and with the trigger disabled.
func TestFunctionHoldsOffOthers(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		for _, before := range []string{"", "SET session_replication_role = replica", "ALTER TABLE fencing_tokens DISABLE TRIGGER " + trigger} {
			for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead} {
				all := others
				if strings.HasPrefix(before, "ALTER") {
					all = slices.Concat(losing, others)
				}
				for i, other := range all {
					if i > 0 && before != "" && level != sql.LevelReadCommitted {
						break // one statement is enough
					}
					t.Run(fmt.Sprintf("%.20s/%v/%.60s", before, level, other), func(t *testing.T) {
						sh, db, count := installed(t, b)
						if strings.HasPrefix(before, "ALTER") {
							write(t, db, 8, nil) // for a minute the pool takes the function for complete
							sh.Exec(t, before)
						}
						tx := harness.Begin(harness.Holding(t, 8), t, db, level)
						write(t, tx, 8, nil)
						wantCalled(t, count)
						foreign := sh.Raw(t, sh.Source)
						foreign.SetMaxOpenConns(1)
						if strings.HasPrefix(before, "SET") {
							exec(t, foreign, before)
						}
						err := sh.Behind(t, tx, func() error {
							_, err := foreign.Exec(other)
							return err
						})
						if err != nil {
							t.Error(err)
						}
					})
				}
			}
		}
	})
}

// The function's plan contains whether the trigger is enabled, and PostgreSQL makes another plan after each change of
// the trigger. After some executions a plan is kept.
func TestFunctionIsPlannedByTheTriggerState(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh, db, _ := installed(t, b)
		db.SetMaxOpenConns(1)
		plain := sh.Raw(t, sh.Source)
		const held = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'RowShareLock' " +
			"AND relation = 'fencing_tokens'::regclass"
		for _, state := range []struct {
			change string
			locks  int // without its trigger the ledger's row is locked
		}{
			{"ENABLE ALWAYS TRIGGER", 0}, {"DISABLE TRIGGER", 1}, {"ENABLE ALWAYS TRIGGER", 0}, {"ENABLE TRIGGER", 1},
			{"ENABLE ALWAYS TRIGGER", 0}, {"ENABLE REPLICA TRIGGER", 1},
		} {
			exec(t, plain, "ALTER TABLE fencing_tokens "+state.change+" "+trigger)
			for range 12 {
				tx := harness.Begin(harness.Holding(t, 8), t, db, sql.LevelDefault)
				write(t, tx, 8, nil)
				var n int
				if err := tx.QueryRow(held).Scan(&n); err != nil || n != state.locks {
					t.Fatalf("%s: %d locks, %v; want %d", state.change, n, err, state.locks)
				}
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// A write's lock is released by a rollback to a savepoint before the write, and by no other rollback.
func TestFunctionAtASavepoint(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh, db, _ := installed(t, b)
		tx := harness.Begin(harness.Holding(t, 8), t, db, sql.LevelDefault)
		for _, query := range []string{"SAVEPOINT a", "", "SAVEPOINT b", "", "ROLLBACK TO b"} {
			if query == "" {
				write(t, tx, 8, nil)
			} else if _, err := tx.Exec(query); err != nil {
				t.Fatal(err)
			}
		}
		const held = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'"
		for _, want := range []int{2, 0} {
			var n int
			if err := tx.QueryRow(held).Scan(&n); err != nil || n != want {
				t.Errorf("%d locks, %v; want %d", n, err, want)
			}
			if _, err := tx.Exec("ROLLBACK TO a"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := sh.Issue(t.Context()); err != nil { // no writer's lock is left to wait for
			t.Error(err)
		}
	})
}

// Issue waits for the writers of its name before it locks a row of the ledger, also if the name is a lease's. Otherwise
// a holder that releases a lease in the middle of the holder's transaction would wait for itself.
func TestIssuerWaitsWithoutARow(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh, db, _ := installed(t, b)
		tx := harness.Begin(harness.Holding(t, 8), t, db, sql.LevelDefault)
		write(t, tx, 8, nil)
		session, store := b.Session(t, tx), harness.NewStore(t, sh.Plain)
		issuing := harness.Go(func() error {
			_, err := store.Issue(t.Context(), "books")
			return err
		})
		sh.WantBlocked(t, session, issuing.Ended())
		if _, err := sh.Plain.Exec("SELECT FROM fencing_tokens FOR UPDATE NOWAIT"); err != nil {
			t.Errorf("while Issue waits: %v", err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		if err := issuing.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// A transaction that changes the tokens of many names locks the whole table instead of each name, because the server
// hasn't room for so many locks.
func TestFunctionWhereManyTokensChange(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh, db, _ := installed(t, b)
		sh.Exec(t, "INSERT INTO fencing_tokens SELECT 'name ' || n, 1 FROM generate_series(1, 1000) AS n")
		if _, err := harness.NewStore(t, db).Repair(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		write(t, db, 100, nil)
		tx := harness.Begin(context.Background(), t, sh.Plain, sql.LevelDefault)
		if _, err := tx.Exec("UPDATE fencing_tokens SET token = token + 1"); err != nil {
			t.Fatal(err)
		}
		var locks int
		if err := tx.QueryRow("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()").Scan(&locks); err != nil {
			t.Fatal(err)
		}
		if locks > 300 {
			t.Errorf("%d locks", locks)
		}
		_ = sh.Behind(t, tx, func() error {
			write(t, db, 100, sqlfence.ErrStale)
			return nil
		})
	})
}

// Writers at all isolation levels run beside others that issue tokens by sqlfence and by plain SQL. No session waits
// for ever, and no stale write succeeds. Each book's last stored token is that of its last writer.
func TestFunctionInMixedCompany(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh, with, count := installed(t, b)
		write(t, with, 8, nil)
		wantCalled(t, count)
		store := harness.NewStore(t, sh.Plain)
		var wg sync.WaitGroup
		stop := make(chan struct{})
		var deadlocks atomic.Int64
		note := func(err error) {
			if harness.SQLState(err) == "40P01" {
				deadlocks.Add(1)
			}
		}
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			for id := range 2 {
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						note(writeNewest(t, sh, with, level, id+1))
					}
				})
			}
		}
		for range 100 {
			if _, err := store.Issue(t.Context(), "books"); err != nil {
				t.Error(err)
			}
			_, err := sh.Plain.Exec(others[0])
			note(err)
			if _, err := sh.Issue(t.Context()); err != nil {
				t.Error(err)
			}
		}
		close(stop)
		wg.Wait()
		if n := deadlocks.Load(); n > 0 {
			t.Errorf("%d deadlocks", n)
		}
	})
}

// writeNewest writes with the newest token to a book, in a transaction of this level, and returns an error of the
// write.
func writeNewest(t *testing.T, sh *harness.Shop, db *sql.DB, level sql.IsolationLevel, id int) error {
	var token int64
	if err := sh.Plain.QueryRow("SELECT token FROM fencing_tokens WHERE name = 'books'").Scan(&token); err != nil {
		t.Error(err)
		return nil
	}
	ctx := harness.Holding(t, token)
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		t.Error(err)
		return nil
	}
	defer tx.Rollback()
	for range 2 { // the second UPDATE has the locks already
		if _, err := tx.ExecContext(ctx, "UPDATE books SET fence_token = $1 WHERE id = $2", token, id); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// runs executes a statement in a function, so that no guard sees the statement move the session to another schema. If
// the guard saw this, it would refuse later writes.
const runs = "CREATE FUNCTION runs(query text) RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE query; END'"

// The function reads the same ledger as a query in the statement would, whatever search path the session has at
// execution, and no other object is found instead of it.
func TestFunctionAsksTheLedgerOfTheSearchPath(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh, _, _ := installed(t, b)
		db, count := b.Counted(t, sh.Source, harness.Books(sqlfence.Ledger()))
		schema := schemaOf(t, sh)
		t.Cleanup(func() { _, _ = sh.Plain.Exec("DROP SCHEMA IF EXISTS " + schema + "_b CASCADE") })
		for _, query := range []string{
			"CREATE SCHEMA " + schema + "_b",
			"CREATE TABLE " + schema + "_b.fencing_tokens (name text PRIMARY KEY, token bigint NOT NULL)",
			"INSERT INTO " + schema + "_b.fencing_tokens VALUES ('books', 5)",
			// Functions of the same name whose parameters match the guards' arguments.
			"CREATE FUNCTION " + schema + "_b." + name + "(text, bigint, integer, oid) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
			"CREATE FUNCTION " + schema + "_b." + name + "(text, bigint, integer, regclass) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
			"CREATE FUNCTION " + schema + "." + name + "(varchar, bigint, bigint, oid) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
			// If the guard's constants had no types, they would match these parameters.
			"CREATE FUNCTION " + schema + "." + name + "(text, integer, integer, regclass) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
			runs,
		} {
			sh.Exec(t, query)
		}
		db.SetMaxOpenConns(1)
		stmt, err := db.Prepare(harness.SetPrice)
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		for _, c := range []struct {
			set    string
			newest int64
		}{
			{"ANALYZE books", 8},
			{"SET search_path = " + schema + "_b, " + schema, 5},
			{"SET search_path = " + schema, 8},
			{"CREATE TEMPORARY TABLE fencing_tokens AS SELECT 'books'::text AS name, 6::bigint AS token", 6},
			{"DROP TABLE pg_temp.fencing_tokens", 8},
		} {
			bypass := sqlfence.Bypass(t.Context(), "a test")
			if _, err := db.ExecContext(bypass, "SELECT "+schema+".runs($1)", c.set); err != nil {
				t.Fatal(err)
			}
			for _, token := range []int64{c.newest, c.newest - 1} {
				want := error(nil)
				if token < c.newest {
					want = sqlfence.ErrStale
				}
				write(t, db, token, want)
				wantCalled(t, count)
				if _, err := stmt.ExecContext(harness.Holding(t, token), 30, 1); (err == nil) != (want == nil) {
					t.Errorf("prepared, after %q with %d: %v", c.set, token, err)
				}
				if _, err := db.ExecContext(harness.Holding(t, token), "UPDATE books SET price = 30 WHERE id = 1"); (err == nil) != (want == nil) {
					t.Errorf("without arguments, after %q with %d: %v", c.set, token, err)
				}
			}
		}
	})
}

// If a function's owner hasn't the privileges of the ledger's owner, guards don't call the function.
func TestFunctionOfAStrangerIsNotUsed(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh, db, _ := installed(t, b)
		asRole(t, sh, db) // creates it
		sh.Exec(t, "ALTER FUNCTION "+name+" OWNER TO "+schemaOf(t, sh)+"_role")
		write(t, b.Fenced(t, sh.Source, harness.Books()), 8, sqlfence.ErrNotSetUp)
	})
}

// If the ledger's unique index is gone, and a name has two rows, a write with the lower token fails.
func TestFunctionWithoutTheUniqueIndex(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		sh, db, _ := installed(t, b)
		write(t, db, 8, nil)
		sh.Exec(t, "ALTER TABLE fencing_tokens DROP CONSTRAINT fencing_tokens_pkey")
		sh.Exec(t, "INSERT INTO fencing_tokens VALUES ('books', 9)")
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead} {
			tx := harness.Begin(harness.Holding(t, 8), t, db, level)
			// This statement has no place for the check before the first row, which would find the higher token.
			_, err := tx.ExecContext(harness.Holding(t, 8), "INSERT INTO books (isbn, id) VALUES ($1, $2), ($3, $4)", "a", 11, "b", 12)
			if err == nil {
				t.Errorf("%v: a write with the lower token succeeded", level)
			}
			if err := tx.Rollback(); err != nil {
				t.Error(err)
			}
		}
	})
}

// If row-level security of the ledger applies to a role, this role can't write, also in a pool that was opened before.
// Without a policy for UPDATE, PostgreSQL 17 wouldn't evaluate the guard's condition, and the stale write would succeed.
func TestFunctionUnderRowLevelSecurityIsNotUsed(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		for _, policy := range []string{
			"SELECT 1",
			"CREATE POLICY p ON fencing_tokens FOR SELECT USING (true)",
			"CREATE POLICY p ON fencing_tokens USING (false)",
			"CREATE POLICY p ON fencing_tokens USING (name <> 'books')",
		} {
			t.Run(policy, func(t *testing.T) {
				sh, _, _ := installed(t, b)
				early := asRole(t, sh, b.Fenced(t, sh.Source, harness.Books(sqlfence.Ledger())))
				write(t, early, 8, nil)
				sh.Exec(t, "ALTER TABLE fencing_tokens ENABLE ROW LEVEL SECURITY")
				sh.Exec(t, policy)
				for _, token := range []int64{7, 8, 9} {
					for range 2 {
						_, err := early.ExecContext(harness.Holding(t, token), "UPDATE books SET price = price + 1")
						if err == nil {
							t.Errorf("token %d of an open pool: the write succeeded", token)
						}
					}
				}
				owner := b.Fenced(t, sh.Source, harness.Books(sqlfence.Ledger()))
				write(t, owner, 8, nil)
				write(t, owner, 7, sqlfence.ErrStale)
				db := inRole(t, sh, b.Fenced(t, sh.Source, harness.Books(sqlfence.Ledger())))
				for _, token := range []int64{7, 8, 9} {
					write(t, db, token, sqlfence.ErrNotSetUp)
				}
				if found := findings(t, db); b.Name != "fencepgx" && !strings.Contains(strings.Join(found, "\n"), "row-level security") {
					t.Errorf("verify.Check found %q, want the row-level security", found)
				}
			})
		}
	})
}

// LedgerFunction's statement fails on tables for which the function wouldn't answer as the guard's query does.
func TestFunctionIsNotInstalledFor(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		for _, c := range []struct{ create, rest string }{
			{"CREATE VIEW fencing_tokens AS SELECT 'books'::text AS name, 8::bigint AS token", ""},
			{"CREATE TABLE fencing_tokens (name text, token bigint)", ""},
			{"CREATE TABLE fencing_tokens (name text, token bigint)", "CREATE UNIQUE INDEX ON fencing_tokens (name) WHERE token > 0"},
			{"CREATE TABLE fencing_tokens (name text PRIMARY KEY, token numeric)", ""},
			{"CREATE TABLE fencing_tokens (name char(20) PRIMARY KEY, token bigint)", ""},
			{"CREATE COLLATION IF NOT EXISTS blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
				"CREATE TABLE fencing_tokens (name text COLLATE blind PRIMARY KEY, token bigint)"},
			{"CREATE TABLE fencing_tokens (name text PRIMARY KEY, token bigint) PARTITION BY LIST (name)", ""},
			{"CREATE TABLE fencing_tokens (name text PRIMARY KEY, token bigint)", "CREATE TABLE child () INHERITS (fencing_tokens)"},
			{"SELECT 1", ""},
		} {
			db := b.Raw(t, b.DSN(t))
			exec(t, db, c.create)
			if c.rest != "" {
				exec(t, db, c.rest)
			}
			if _, err := db.Exec(tokens.LedgerFunction()); harness.SQLState(err) != "55000" {
				t.Errorf("%s; %s: %v, want 55000", c.create, c.rest, err)
			}
		}
	})
}

// ledger creates a ledger with token 8.
const ledger = "CREATE TABLE fencing_tokens (name text PRIMARY KEY, token bigint NOT NULL); INSERT INTO fencing_tokens VALUES ('books', 8)"

// After the schema was renamed, or the function's table was replaced, writes succeed once Setup has run again. A
// session that a visible statement moves to the new schema is refused until its pool is opened again.
func TestFunctionAfterARename(t *testing.T) {
	eachPostgres(t, func(t *testing.T, b harness.Base) {
		for _, change := range [][2]string{
			{"ALTER TABLE fencing_tokens RENAME TO old", ledger},
			{"DROP TABLE fencing_tokens", ledger},
			{"ALTER SCHEMA %s RENAME TO %[1]s_new", "ALTER ROLE CURRENT_USER RESET search_path"},
		} {
			sh, _, _ := installed(t, b)
			sh.Exec(t, runs)
			admin := sh.Plain
			db, _ := b.Counted(t, sh.Source, harness.Books(sqlfence.Ledger()))
			db.SetMaxOpenConns(1)
			schema := schemaOf(t, sh)
			shown := b.Fenced(t, sh.Source, harness.Books(sqlfence.Ledger()))
			shown.SetMaxOpenConns(1)
			exec(t, shown, "SET search_path = "+schema)
			write(t, shown, 8, nil)
			write(t, db, 8, nil)
			for _, query := range change {
				if strings.Contains(query, "%s") {
					query = fmt.Sprintf(query, schema)
				}
				sh.Exec(t, query)
			}
			if strings.Contains(change[0], "SCHEMA") {
				if _, err := db.Exec("SELECT "+schema+"_new.runs($1)", "SET search_path = "+schema+"_new"); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _, _ = sh.Plain.Exec("ALTER SCHEMA " + schema + "_new RENAME TO " + schema) })
				exec(t, shown, "SET search_path = "+schema+"_new")
				write(t, shown, 8, sqlfence.ErrUnguardable)
				shown = b.Fenced(t, strings.ReplaceAll(sh.Source, schema, schema+"_new"), harness.Books(sqlfence.Ledger()))
				write(t, shown, 8, sqlfence.ErrNotSetUp)
				admin = b.Raw(t, strings.ReplaceAll(sh.Source, schema, schema+"_new"))
			}
			exec(t, admin, tokens.LedgerFunction())
			write(t, shown, 8, nil)
			write(t, shown, 7, sqlfence.ErrStale)
			if strings.Contains(change[0], "SCHEMA") {
				write(t, db, 8, sqlfence.ErrNotSetUp) // the refusal makes the session look for the function again
			}
			write(t, db, 8, nil)
			write(t, db, 7, sqlfence.ErrStale)
		}
	})
}
