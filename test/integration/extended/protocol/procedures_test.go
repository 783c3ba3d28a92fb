package protocol_test

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
	"github.com/sqlfence/sqlfence/verify"
)

// Stored procedures with which programs in other languages take tokens and leases.

// procedures returns a database in which the procedures are installed.
func procedures(t *testing.T) (l *library, db *sql.DB, leases *lease.Leases) {
	t.Helper()
	l = open(t, harness.Bases[1])
	return l, l.plain, harness.NewLeases(t, l.plain, lease.WithProcedures())
}

// issued calls sqlfence_issue.
func issued(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, name string) (token int64, err error) {
	err = db.QueryRowContext(ctx, "CALL sqlfence_issue($1)", name).Scan(&token)
	return token, err
}

// A taken is the row that sqlfence_lease_acquire returns.
type taken struct {
	lockID, holder sql.NullString
	token          sql.NullInt64
	expires        sql.NullTime
}

func acquired(ctx context.Context, db *sql.DB, key string, owner any, seconds float64) (l taken, err error) {
	err = db.QueryRowContext(ctx, "CALL sqlfence_lease_acquire($1, $2, $3)", key, owner, seconds).
		Scan(&l.lockID, &l.token, &l.expires, &l.holder)
	return l, err
}

// wantState fails the test unless err has the SQLSTATE; "" stands for no error.
func wantState(t *testing.T, what, want string, err error) {
	t.Helper()
	if got := harness.SQLState(err); got != want {
		t.Errorf("%s: %v, want SQLSTATE %q", what, err, want)
	}
}

func TestProceduresIssueAndAdopt(t *testing.T) {
	_, db, _ := procedures(t)
	ctx := t.Context()
	store := harness.NewStore(t, db)
	call := func(query string, args ...any) error {
		_, err := db.ExecContext(ctx, query, args...)
		return err
	}
	for want := int64(1); want < 6; want += 2 {
		if got, err := issued(ctx, db, "books"); got != want || err != nil {
			t.Errorf("issued %d, %v, want %d", got, err, want)
		}
		if got := harness.IssueToken(t, store, "books"); got != want+1 {
			t.Errorf("package tokens issued %d, want %d", got, want+1)
		}
	}
	wantState(t, "adopt", "", call("CALL sqlfence_adopt('books', 42)"))
	wantState(t, "adopt again", "", call("CALL sqlfence_adopt('books', 42)"))
	wantState(t, "adopt a lower one", "FT002", call("CALL sqlfence_adopt('books', 41)"))
	harness.WantLedger(t, db, "books=42")

	// The procedures normalise names and limit their length as package tokens does.
	harness.IssueToken(t, store, "caf\u00e9")
	if got, err := issued(ctx, db, "cafe\u0301"); got != 2 || err != nil {
		t.Errorf("the other spelling: %d, %v", got, err)
	}
	if _, err := issued(ctx, db, strings.Repeat("\u00e9", 256)); err != nil {
		t.Error(err)
	}
	for _, name := range []any{"", nil, "sqlfence:floor", strings.Repeat("x", 513), strings.Repeat("\u00e9", 256) + "x"} {
		wantState(t, fmt.Sprintf("issue %q", name), "22023", call("CALL sqlfence_issue($1)", name))
		wantState(t, fmt.Sprintf("adopt %q", name), "22023", call("CALL sqlfence_adopt($1, 1)", name))
		wantState(t, fmt.Sprintf("acquire %q", name), "22023", call("CALL sqlfence_lease_acquire($1, 'w', 30)", name))
	}
	for _, token := range []any{0, -1, sqlfence.MaxToken + 1, nil} {
		wantState(t, fmt.Sprintf("adopt %v", token), "22023", call("CALL sqlfence_adopt('books', $1)", token))
	}

	// After MaxToken no token is issued. The tokens of a deleted name aren't issued again.
	if err := store.Adopt(ctx, sqlfence.Token{Name: "ends", Value: sqlfence.MaxToken - 1}); err != nil {
		t.Fatal(err)
	}
	if got, err := issued(ctx, db, "ends"); got != sqlfence.MaxToken || err != nil {
		t.Errorf("issued %d, %v", got, err)
	}
	wantState(t, "issue behind the last", "2200H", call("CALL sqlfence_issue('ends')"))
	wantState(t, "acquire behind the last", "2200H", call("CALL sqlfence_lease_acquire('ends', 'w', 30)"))
	if left, err := store.Delete(ctx, "books"); err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	wantState(t, "adopt a deleted name's", "FT002", call("CALL sqlfence_adopt('books', 42)"))
	if got, err := issued(ctx, db, "books"); got != 43 || err != nil {
		t.Errorf("issued %d, %v, want 43", got, err)
	}
}

// The procedures refuse to run in a transaction, because a rollback would cause a token to be issued twice.
func TestProceduresCommit(t *testing.T) {
	_, db, _ := procedures(t)
	ctx := t.Context()
	l, err := acquired(ctx, db, "books", "w", 30)
	if err != nil {
		t.Fatal(err)
	}
	calls := []string{
		"CALL sqlfence_issue('books')", "CALL sqlfence_adopt('books', 42)", "CALL sqlfence_lease_acquire('pens', 'w', 30)",
		"CALL sqlfence_lease_extend('" + l.lockID.String + "', 30)", "CALL sqlfence_lease_release('" + l.lockID.String + "')",
	}
	before := harness.LedgerRows(t, db)
	for _, call := range calls {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.ExecContext(ctx, call)
		wantState(t, call, "2D000", err)
		_ = tx.Rollback()
	}
	harness.WantLedger(t, db, before...)

	// The session's isolation level, search_path and temporary tables must not affect the procedures.
	for i, set := range []string{
		"SET default_transaction_isolation = 'serializable'", "SET default_transaction_isolation = 'repeatable read'",
		"SET search_path = pg_temp", "SET synchronous_commit = off",
	} {
		conn, err := db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var home string
		if err := conn.QueryRowContext(ctx, "SELECT quote_ident(current_schema())").Scan(&home); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{set, "CREATE TEMPORARY TABLE IF NOT EXISTS fencing_tokens (name text PRIMARY KEY, token bigint)"} {
			if _, err := conn.ExecContext(ctx, text); err != nil {
				t.Fatal(err)
			}
		}
		var token int64
		err = conn.QueryRowContext(ctx, "CALL "+home+".sqlfence_issue('books')").Scan(&token)
		if err != nil || token != int64(i+2) {
			t.Errorf("%s: %d, %v, want %d", set, token, err, i+2)
		}
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // discards the connection with its settings
		_ = conn.Close()
	}
}

func TestProceduresLease(t *testing.T) {
	_, db, leases := procedures(t)
	ctx := t.Context()
	l, err := acquired(ctx, db, "books", "w", 3600)
	if err != nil || !l.lockID.Valid || l.token.Int64 != 1 || l.holder.String != "w" {
		t.Fatalf("%+v, %v", l, err)
	}
	if info, live, err := leases.Lookup(ctx, "books"); err != nil || !live || info.LockID != l.lockID.String ||
		info.Token.Value != 1 || info.Holder != "w" || info.ExpiresAt.Sub(l.expires.Time).Abs() > time.Microsecond {
		t.Errorf("package lease sees %+v, %v, %v", info, live, err)
	}
	if _, ok, err := leases.TryAcquire(ctx, "books"); ok || err != nil {
		t.Errorf("package lease gets it, too: %v, %v", ok, err)
	}
	for _, owner := range []any{nil, "", "other"} {
		other, err := acquired(ctx, db, "books", owner, 30)
		if err != nil || other.lockID.Valid || other.token.Valid || other.holder.String != "w" || !other.expires.Time.Equal(l.expires.Time) {
			t.Errorf("%v gets %+v, %v", owner, other, err)
		}
	}
	if same, err := acquired(ctx, db, "books", "w", 30); err != nil || same != l {
		t.Errorf("the owner gets %+v, %v, want %+v", same, err, l)
	}
	var until time.Time
	if err := db.QueryRow("CALL sqlfence_lease_extend($1, 7200)", l.lockID).Scan(&until); err != nil || !until.After(l.expires.Time) {
		t.Errorf("extended until %v, %v", until, err)
	}
	if _, err := db.Exec("CALL sqlfence_lease_release($1)", l.lockID); err != nil {
		t.Fatal(err)
	}
	for _, id := range []any{l.lockID, "", nil, "x' OR true --"} {
		_, err := db.Exec("CALL sqlfence_lease_release($1)", id)
		wantState(t, fmt.Sprintf("release %v", id), "FT002", err)
		_, err = db.Exec("CALL sqlfence_lease_extend($1, 30)", id)
		wantState(t, fmt.Sprintf("extend %v", id), "FT002", err)
	}
	for _, seconds := range []any{0, -1, 0.0009, 86401, "NaN", "Infinity", nil} {
		_, err := db.Exec("CALL sqlfence_lease_acquire('books', 'w', $1)", seconds)
		wantState(t, fmt.Sprintf("acquire for %v", seconds), "22023", err)
	}
	_, err = db.Exec("CALL sqlfence_lease_acquire('books', $1, 30)", strings.Repeat("x", 513))
	wantState(t, "a long owner", "22023", err)

	held := harness.MustAcquire(t, leases, "books", lease.Resume("go"))
	harness.WantToken(t, held, "books", 2)
	if other, err := acquired(ctx, db, "books", "w", 30); err != nil || other.lockID.Valid || other.holder.String != "go" {
		t.Errorf("beside package lease: %+v, %v", other, err)
	}
	harness.MustRelease(t, held)
	// A lease that has expired goes to the next caller, with the next token.
	if l, err = acquired(ctx, db, "books", "w", 0.001); err != nil || l.token.Int64 != 3 {
		t.Errorf("%+v, %v", l, err)
	}
	harness.Eventually(t, "the lease to end", func() bool {
		next, err := acquired(ctx, db, "books", "next", 30)
		return err == nil && next.token.Int64 == 4
	})
	_, err = db.Exec("CALL sqlfence_lease_extend($1, 30)", l.lockID)
	wantState(t, "extend one that was taken over", "FT002", err)
}

// compete lets the procedures and sqlfence's packages take tokens and leases of the same keys concurrently, and returns
// the violations.
func compete(t *testing.T, db *sql.DB, leases *lease.Leases, store *tokens.Store, rounds int) (faults []string) {
	t.Helper()
	const workers, keys = 8, 3
	var mu sync.Mutex
	fault := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		faults = append(faults, fmt.Sprintf(format, args...))
	}
	type state struct {
		highest, holders atomic.Int64
		seen             sync.Map
	}
	states := make([]state, keys)
	took := func(s *state, key string, before, token int64) {
		if _, again := s.seen.LoadOrStore(token, true); again {
			fault("%s: %d was issued twice", key, token)
		}
		if token <= before {
			fault("%s: %d was issued behind %d", key, token, before)
		}
		for now := s.highest.Load(); now < token && !s.highest.CompareAndSwap(now, token); now = s.highest.Load() {
		}
	}
	enter := func(s *state, key string) {
		if n := s.holders.Add(1); n != 1 {
			fault("%s: %d hold the lease at once", key, n)
		}
	}
	var wg sync.WaitGroup
	for w := range workers {
		random := rand.New(rand.NewPCG(harness.Seed(t), uint64(w)))
		wg.Go(func() {
			ctx := t.Context()
			for range rounds {
				i := random.IntN(keys)
				s, key := &states[i], fmt.Sprintf("key %d", i)
				before := s.highest.Load()
				switch random.IntN(5) {
				case 0:
					token, err := issued(ctx, db, key)
					if err != nil {
						fault("issue: %v", err)
						continue
					}
					took(s, key, before, token)
				case 1:
					token, err := store.Issue(ctx, key)
					if err != nil {
						fault("Issue: %v", err)
						continue
					}
					took(s, key, before, token.Value)
				case 2:
					l, err := acquired(ctx, db, key, nil, 3600)
					if err != nil {
						fault("acquire: %v", err)
					}
					if err != nil || !l.lockID.Valid {
						continue
					}
					enter(s, key)
					took(s, key, before, l.token.Int64)
					if _, err := db.ExecContext(ctx, "CALL sqlfence_lease_extend($1, 7200)", l.lockID); err != nil {
						fault("extend: %v", err)
					}
					s.holders.Add(-1)
					if _, err := db.ExecContext(ctx, "CALL sqlfence_lease_release($1)", l.lockID); err != nil {
						fault("release: %v", err)
					}
				case 3:
					l, ok, err := leases.TryAcquire(ctx, key)
					if err != nil {
						fault("TryAcquire: %v", err)
					}
					if err != nil || !ok {
						continue
					}
					enter(s, key)
					took(s, key, before, l.Token().Value)
					s.holders.Add(-1)
					if err := l.Release(ctx); err != nil {
						fault("Release: %v", err)
					}
				case 4:
					// Adopt a token above every known token: no holder has this one.
					token := before + 1000
					var err error
					if random.IntN(2) == 0 {
						_, err = db.ExecContext(ctx, "CALL sqlfence_adopt($1, $2)", key, token)
					} else {
						err = store.Adopt(ctx, sqlfence.Token{Name: key, Value: token})
					}
					if err != nil && harness.SQLState(err) != "FT002" && !errors.Is(err, sqlfence.ErrStale) {
						fault("adopt: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	return faults
}

// Programs in Go and in other languages take tokens and leases of the same keys. No token may be issued twice, tokens
// may not decrease, and a lease may not have two holders.
func TestProceduresCompete(t *testing.T) {
	_, db, leases := procedures(t)
	db.SetMaxOpenConns(12)
	for _, f := range compete(t, db, leases, harness.NewStore(t, db), harness.Rounds(t, 1000)) {
		t.Error(f)
	}
}

// Each test damages one procedure. compete must find a violation, and verify.Check must report the damage.
func TestProceduresCanFail(t *testing.T) {
	for _, sabotage := range []struct{ name, procedure, old, new string }{
		{"a lease that is live is taken over", "sqlfence_lease_acquire", "l.expires_at > pg_catalog.clock_timestamp()", "false"},
		{"a token isn't stored", "sqlfence_issue", "SET token = GREATEST(COALESCE(fencing_tokens.token, 0) + $2::bigint, excluded.token)", "SET token = fencing_tokens.token"},
		{"a lease's token isn't stored", "sqlfence_lease_acquire", "FROM won WHERE won.lock_id = $2::text", "FROM won WHERE false"},
	} {
		t.Run(sabotage.name, func(t *testing.T) {
			lib, db, leases := procedures(t)
			db.SetMaxOpenConns(12)
			if found := wrongLedger(t, lib); found != 0 {
				t.Errorf("verify.Check finds %d faults of the ledger", found)
			}
			var text string
			err := db.QueryRow("SELECT pg_get_functiondef(p.oid) FROM pg_proc AS p WHERE p.proname = $1 AND p.pronamespace = current_schema()::regnamespace", sabotage.procedure).Scan(&text)
			changed := strings.ReplaceAll(text, sabotage.old, sabotage.new)
			if err != nil || changed == text {
				t.Fatalf("nothing to change, %v", err)
			}
			if sabotage.new == "false" { // the procedure also tests this before it locks the row
				changed = strings.ReplaceAll(changed, "held.expires_at > clock.now", "false")
			}
			harness.MustExec(t, db, changed)
			if found := wrongLedger(t, lib); found != 1 {
				t.Errorf("verify.Check finds %d faults of the ledger, want 1", found)
			}
			harness.Eventually(t, "a fault", func() bool {
				return len(compete(t, db, leases, harness.NewStore(t, db), 100)) > 0 || t.Failed()
			})
			// Setup restores the damaged procedure.
			if err := leases.Setup(t.Context()); err != nil {
				t.Fatal(err)
			}
			if found := wrongLedger(t, lib); found != 0 {
				t.Errorf("verify.Check finds %d faults of the ledger behind Setup", found)
			}
		})
	}
	t.Run("another one of the name", func(t *testing.T) {
		lib, db, _ := procedures(t)
		harness.MustExec(t, db, "CREATE FUNCTION sqlfence_issue(name varchar, n int) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'")
		if found := wrongLedger(t, lib); found != 1 {
			t.Errorf("verify.Check finds %d faults of the ledger, want 1", found)
		}
	})
	t.Run("the commit", func(t *testing.T) {
		_, db, _ := procedures(t)
		var text string
		if err := db.QueryRow("SELECT pg_get_functiondef('sqlfence_issue'::regproc)").Scan(&text); err != nil {
			t.Fatal(err)
		}
		text = strings.NewReplacer("COMMIT;", "", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;", "").Replace(text)
		harness.MustExec(t, db, text)
		var got [2]int64
		for i := range got {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got[i], err = issued(t.Context(), tx, "books"); err != nil {
				t.Fatal(err)
			}
			_ = tx.Rollback()
		}
		if got[0] != got[1] {
			t.Errorf("issued %v: a rollback doesn't matter", got)
		}
	})
}

// wrongLedger returns the number of findings in which verify.Check reports that the ledger differs from Setup's.
func wrongLedger(t *testing.T, l *library) (n int) {
	t.Helper()
	fenced := l.Fenced(t, l.dsn, harness.Books(sqlfence.Ledger()))
	found, err := verify.Check(t.Context(), fenced)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Code == "wrong-ledger" && strings.HasPrefix(f.Problem, "The procedure ") {
			n++
		}
	}
	return n
}

// Only PostgreSQL has the procedures. Setup fails if a procedure is missing and the role may not create it.
func TestProceduresRefused(t *testing.T) {
	for _, b := range []harness.Base{harness.Bases[2], harness.MySQL} {
		db := b.Raw(t, b.DSN(t))
		if _, err := tokens.New(db, tokens.WithProcedures()); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("tokens on %s: %v", b.Name, err)
		}
		if _, err := lease.New(db, lease.WithProcedures()); !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("lease on %s: %v", b.Name, err)
		}
	}
	l, db, leases := procedures(t)
	// A role that may not create the procedures uses the owner's procedures.
	var home string
	if err := db.QueryRow("SELECT quote_ident(current_schema())").Scan(&home); err != nil {
		t.Fatal(err)
	}
	name := "sqlfence_" + strings.ToLower(crand.Text())
	harness.MustExec(t, db, "CREATE ROLE "+name)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, query := range []string{"DROP OWNED BY " + name, "DROP ROLE " + name} {
			if _, err := db.ExecContext(ctx, query); err != nil {
				t.Error(err)
			}
		}
	})
	harness.MustExec(t, db, "GRANT USAGE ON SCHEMA "+home+" TO "+name)
	harness.MustExec(t, db, "GRANT SELECT, INSERT, UPDATE, DELETE ON fencing_tokens, fencing_leases TO "+name)
	asRole := l.Raw(t, l.dsn)
	asRole.SetMaxOpenConns(1)
	harness.MustExec(t, asRole, "SET ROLE "+name)
	role, err := lease.New(asRole, lease.WithProcedures())
	if err == nil {
		err = role.Setup(t.Context())
	}
	if err != nil {
		t.Errorf("Setup by the role: %v", err)
	}
	if _, err := issued(t.Context(), asRole, "books"); err != nil {
		t.Errorf("by the role: %v", err)
	}
	harness.MustExec(t, db, "DROP PROCEDURE sqlfence_lease_release")
	if err := role.Setup(t.Context()); harness.SQLState(err) != "42501" {
		t.Errorf("Setup by the role, where one is missing: %v", err)
	}
	harness.MustExec(t, db, "CREATE FUNCTION sqlfence_lease_release(lock_id text) RETURNS void LANGUAGE sql AS 'SELECT'")
	if err := leases.Setup(t.Context()); err == nil {
		t.Error("Setup takes a function for its procedure")
	}
}

// The page's calls must succeed and return the columns that the page lists.
func TestProceduresOfThePage(t *testing.T) {
	_, db, _ := procedures(t)
	var lockID sql.NullString
	for line := range strings.Lines(block(t, "postgres procedures")) {
		call, returns, _ := strings.Cut(strings.TrimSpace(line), "--")
		call = strings.ReplaceAll(call, "30", "3600") // the lease must not expire during the test
		if lockID.Valid {
			call = strings.ReplaceAll(call, "mJ1fIbmTQ4mVzBFQqXLVog", lockID.String)
		}
		rows, err := db.Query(call)
		if err != nil {
			t.Fatalf("%s: %v", call, err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(call, "acquire") && rows.Next() {
			if err := rows.Scan(&lockID, new(any), new(any), new(any)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatalf("%s: %v", call, err)
		}
		if want := strings.TrimSpace(returns); len(columns) > 0 && strings.Join(columns, ", ") != want {
			t.Errorf("%s returns %s, the page says %s", call, columns, want)
		}
	}
	harness.WantLedger(t, db, "books=43")
}

// Through a fenced database only sqlfence's packages may define or drop the procedures.
func TestProceduresAreKept(t *testing.T) {
	l, _, leases := procedures(t)
	db := l.Fenced(t, l.dsn, harness.Books(sqlfence.Ledger()))
	for _, query := range []string{
		"DROP PROCEDURE sqlfence_issue", "ALTER PROCEDURE sqlfence_issue RENAME TO issue", "DROP ROUTINE sqlfence_lease_acquire",
		"CREATE OR REPLACE PROCEDURE sqlfence_lease_release(lock_id text) LANGUAGE sql AS 'SELECT 1'",
	} {
		if _, err := db.Exec(query); !errors.Is(err, sqlfence.ErrUnguardable) {
			t.Errorf("%s: %v, want ErrUnguardable", query, err)
		}
	}
	// Setup through the fenced database succeeds.
	fenced, err := lease.New(db, lease.WithProcedures())
	if err == nil {
		err = fenced.Setup(t.Context())
	}
	if err != nil {
		t.Error(err)
	}
	harness.MustRelease(t, harness.MustAcquire(t, leases, "books"))
	// A CALL is refused on a fenced database, because the called code could write to the registered table. A program
	// with a fenced database takes tokens with package tokens.
	if _, err := db.Exec("CALL sqlfence_issue('books')"); !errors.Is(err, sqlfence.ErrUnguardable) {
		t.Errorf("a call: %v, want ErrUnguardable", err)
	}
}
