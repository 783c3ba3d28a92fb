package tokens_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// mustDelete deletes names that no lease or table uses.
func mustDelete(t testing.TB, store *tokens.Store, names ...string) {
	t.Helper()
	if left, err := store.Delete(t.Context(), names...); err != nil || len(left) > 0 {
		t.Fatalf("Delete of %q: %q were left, %v", names, left, err)
	}
}

// After its deletion a name continues above its former tokens, whichever call gets the next token.
func TestDeletedNamesGoOn(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		ctx := t.Context()
		store := setupStore(t, db)
		mustDelete(t, store)
		mustDelete(t, store, "unknown")
		for range 5 {
			harness.IssueToken(t, store, "jobs/1")
		}
		harness.IssueToken(t, store, "jobs/2")
		mustDelete(t, store, "jobs/2", "jobs/1", "jobs/1", "unknown")
		harness.WantLedger(t, db, floorRow(b, 5)...)
		if _, err := store.Current(ctx, "jobs/1"); !errors.Is(err, sqlfence.ErrUnknownName) {
			t.Errorf("Current: %v", err)
		}
		for value := int64(1); value <= 5; value++ {
			err := store.Adopt(ctx, sqlfence.Token{Name: "jobs/1", Value: value})
			if stale := (*sqlfence.StaleError)(nil); !errors.As(err, &stale) || stale.Current != 5 {
				t.Errorf("Adopt of %d: %v, want a StaleError with 5", value, err)
			} else if !strings.Contains(err.Error(), `"jobs/1" has no token`) {
				t.Errorf("Adopt of %d: %v, want that the name has no token", value, err)
			}
		}
		if _, err := store.Current(ctx, "jobs/1"); !errors.Is(err, sqlfence.ErrUnknownName) {
			t.Errorf("Current: %v", err)
		}
		if got := harness.IssueToken(t, store, "jobs/1"); got != 6 {
			t.Errorf("Issue: %d, want 6", got)
		}
		if err := store.Ensure(ctx, "jobs/2"); err != nil {
			t.Fatal(err)
		}
		if err := store.Adopt(ctx, sqlfence.Token{Name: "jobs/2", Value: 5}); !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("Adopt for a name without a token: %v, want ErrStale", err)
		}
		if got := harness.IssueToken(t, store, "jobs/2"); got != 6 {
			t.Errorf("Issue of a name without a token: %d, want 6", got)
		}
		wantIssued(t, issueMany(t, store, "jobs/3", "jobs/1"), "jobs/3=6", "jobs/1=7")
		if err := store.Adopt(ctx, sqlfence.Token{Name: "jobs/4", Value: 6}); err != nil {
			t.Error(err)
		}
		mustDelete(t, store, "jobs/1", "jobs/2", "jobs/3", "jobs/4")
		leases := harness.NewLeases(t, db)
		harness.WantToken(t, harness.MustAcquire(t, leases, "jobs/1"), "jobs/1", 8)
		l := harness.MustAcquire(t, leases, "jobs/2")
		harness.MustRelease(t, l)
		mustDelete(t, store, "jobs/2")
		harness.WantToken(t, harness.MustAcquire(t, leases, "jobs/2"), "jobs/2", 9)
		if _, err := store.Repair(ctx, 50); err != nil {
			t.Fatal(err)
		}
		if got := harness.IssueToken(t, store, "jobs/9"); got != 51 {
			t.Errorf("Issue behind Repair: %d, want 51", got)
		}
	})
}

// floorRow returns the rows of a ledger with a floor and without names.
func floorRow(b harness.Base, floor int64) []string {
	if b.Dialect == sqlfence.Postgres {
		return nil // WantLedger omits this row
	}
	return []string{fmt.Sprintf("=%d", floor)}
}

// Names that would increase the lower bound too far stay, and rows that aren't names stay.
func TestDeleteLeavesWhatItHasTo(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		ctx := t.Context()
		store := setupStore(t, db)
		for _, name := range []string{"high", "retired", "low"} {
			harness.IssueToken(t, store, name)
		}
		if err := store.Adopt(ctx, sqlfence.Token{Name: "high", Value: sqlfence.WarnToken + 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Rotate(ctx, "retired"); err != nil {
			t.Fatal(err)
		}
		left, err := store.Delete(ctx, "retired", "low", "high")
		if err != nil || !slices.Equal(left, []string{"high", "retired"}) {
			t.Errorf("left %q, %v", left, err)
		}
		for _, name := range []string{"", sqltext.LowerBoundName} {
			if _, err := store.Delete(ctx, "high", name); !errors.Is(err, sqlfence.ErrInvalid) {
				t.Errorf("Delete of %q: %v", name, err)
			}
			if _, err := store.Issue(ctx, name); !errors.Is(err, sqlfence.ErrInvalid) {
				t.Errorf("Issue of %q: %v", name, err)
			}
		}
		for _, query := range []string{"DELETE FROM fencing_tokens", "DELETE FROM fencing_tokens WHERE name = ''", "DELETE FROM fencing_tokens WHERE name = 'sqlfence:floor'"} {
			before := harness.LedgerRows(t, db)
			if _, err := db.ExecContext(sqlfence.Bypass(ctx, "a test"), query); err == nil && before[0] != harness.LedgerRows(t, db)[0] {
				t.Errorf("%s passed", query)
			}
		}
		if got := harness.IssueToken(t, store, "low"); got != 2 {
			t.Errorf("Issue: %d, want 2", got)
		}
	})
}

// Random calls in random order issue and adopt no token of a name twice, and leave the ledger that the model predicts.
func TestDeleteIsAsTheModel(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		ctx := t.Context()
		store := setupStore(t, db)
		leases := harness.NewLeases(t, db)
		rnd := rand.New(rand.NewPCG(rand.Uint64(), 6510))
		floor, held, highest := int64(0), map[string]int64{}, map[string]int64{} // the model
		next := func(name string) int64 { return max(held[name], floor) + 1 }
		for i := range 300 {
			name := fmt.Sprintf("jobs/%02d", rnd.IntN(12))
			var got, want int64
			var err error
			switch op := rnd.IntN(8); op {
			case 0, 1:
				var token sqlfence.Token
				want = next(name)
				token, err = store.Issue(ctx, name)
				got = token.Value
			case 2:
				var issued []sqlfence.Token
				want = next(name)
				if issued, err = store.IssueMany(ctx, name); err == nil {
					got = issued[0].Value
				}
			case 3:
				value := max(1, highest[name]+rnd.Int64N(5)-2)
				err = store.Adopt(ctx, sqlfence.Token{Name: name, Value: value})
				stale := value < held[name] || held[name] == 0 && value <= floor
				if errors.Is(err, sqlfence.ErrStale) != stale {
					t.Fatalf("step %d: Adopt of %s:%d: %v; held %d, floor %d", i, name, value, err, held[name], floor)
				}
				if stale || value == held[name] {
					continue
				}
				got, want = value, value
			case 4:
				if err := store.Ensure(ctx, name); err != nil {
					t.Fatal(err)
				}
				held[name] += 0
				continue
			case 5:
				want = next(name)
				l := harness.MustAcquire(t, leases, name)
				got = l.Token().Value
				harness.MustRelease(t, l)
				if got > want { // a lease's row outlives the name and keeps its token
					want = got
				}
			default:
				mustDelete(t, store, name, "jobs/00")
				for _, gone := range []string{name, "jobs/00"} {
					floor = max(floor, held[gone])
					delete(held, gone)
				}
				continue
			}
			if err != nil || got != want || got <= highest[name] {
				t.Fatalf("step %d: %s: %d, %v, want %d; its highest was %d", i, name, got, err, want, highest[name])
			}
			held[name], highest[name] = got, got
		}
		var rows []string
		if b.Dialect != sqlfence.Postgres && floor > 0 {
			rows = floorRow(b, floor)
		}
		for name, token := range held {
			rows = append(rows, fmt.Sprintf("%s=%d", name, token))
		}
		slices.Sort(rows)
		harness.WantLedger(t, db, rows...)
	})
}

// reusing are statements by which a client gives the deleted name jobs/1 one of its former tokens, or removes the
// floor. Between them the name may have a row without a token.
var reusing = map[sqlfence.Dialect][]string{
	sqlfence.Postgres: {
		"INSERT INTO fencing_tokens VALUES ('jobs/1', 9)", "INSERT INTO fencing_tokens VALUES ('jobs/1', 1)",
		"INSERT INTO fencing_tokens VALUES ('jobs/1', 1) ON CONFLICT (name) DO UPDATE SET token = fencing_tokens.token + 1",
		"BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO fencing_tokens VALUES ('jobs/1', 1); COMMIT",
		"BEGIN; INSERT INTO fencing_tokens VALUES ('jobs/1', 0); UPDATE fencing_tokens SET token = 1 WHERE name = 'jobs/1'; COMMIT",
		"SET sqlfence.count = '-99'; INSERT INTO fencing_tokens VALUES ('jobs/1', 9)", "SET sqlfence.count = '0'; INSERT INTO fencing_tokens VALUES ('jobs/1', 9)",
		"SET sqlfence.count = 'x'; INSERT INTO fencing_tokens VALUES ('jobs/1', 9)",
		"SET sqlfence.count = '-9223372036854775808'; INSERT INTO fencing_tokens VALUES ('jobs/1', 9)",
		"BEGIN; INSERT INTO fencing_tokens VALUES ('jobs/1', -1); UPDATE fencing_tokens SET token = 1 WHERE name = 'jobs/1'; COMMIT",
		"UPDATE fencing_tokens SET token = 0 WHERE name = 'sqlfence:floor'", "DELETE FROM fencing_tokens WHERE name = 'sqlfence:floor'",
		"UPDATE fencing_tokens SET name = 'other' WHERE name = 'sqlfence:floor'", "DELETE FROM fencing_tokens WHERE name = 'books'",
	},
	sqlfence.MySQL: {
		"INSERT INTO fencing_tokens VALUES ('jobs/1', 9)", "INSERT IGNORE INTO fencing_tokens VALUES ('jobs/1', 1)", "REPLACE INTO fencing_tokens VALUES ('jobs/1', 1)",
		"INSERT INTO fencing_tokens VALUES ('jobs/1', 1) ON DUPLICATE KEY UPDATE token = token + 1",
		"UPDATE fencing_tokens SET token = 0 WHERE name = ''", "DELETE FROM fencing_tokens WHERE name = ''", "REPLACE INTO fencing_tokens VALUES ('', 0)",
		"DELETE FROM fencing_tokens WHERE name = 'books'",
	},
	sqlfence.SQLite: {
		"INSERT INTO fencing_tokens VALUES ('jobs/1', 9)", "INSERT OR IGNORE INTO fencing_tokens VALUES ('jobs/1', 1)", "REPLACE INTO fencing_tokens VALUES ('jobs/1', 1)",
		"INSERT INTO fencing_tokens VALUES ('jobs/1', 1) ON CONFLICT (name) DO UPDATE SET token = token + 1",
		"UPDATE fencing_tokens SET token = 0 WHERE name = ''", "DELETE FROM fencing_tokens WHERE name = ''", "REPLACE INTO fencing_tokens VALUES ('', 0)",
		"DELETE FROM fencing_tokens WHERE name = 'books'",
	},
}

// ruins drop a trigger, or create the triggers of a version without Delete again.
var ruins = map[sqlfence.Dialect][][]string{
	sqlfence.Postgres: {
		{"DROP TRIGGER sqlfence_floor_v1 ON fencing_tokens"},
		{"CREATE OR REPLACE FUNCTION sqlfence_turn_v1() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN IF TG_OP = 'DELETE' THEN RAISE EXCEPTION 'no'; END IF; RETURN NULL; END$$"},
	},
	sqlfence.MySQL: {
		{"DROP TRIGGER sqlfence_ledger_first_insert_v1"},
		{"DROP TRIGGER sqlfence_ledger_delete_v1", "CREATE TRIGGER sqlfence_ledger_delete_v1 BEFORE DELETE ON fencing_tokens FOR EACH ROW SIGNAL SQLSTATE '45L01' SET MESSAGE_TEXT = 'no'"},
	},
	sqlfence.SQLite: {
		{"DROP TRIGGER sqlfence_ledger_first_insert_v1"},
		{"DROP TRIGGER sqlfence_ledger_delete_v1", "CREATE TRIGGER sqlfence_ledger_delete_v1 BEFORE DELETE ON fencing_tokens BEGIN SELECT RAISE(ABORT, 'no'); END"},
	},
}

// Neither another client nor an older version of sqlfence without Delete can use a token of a deleted name again. After
// the older version's Setup, Delete fails until this version's Setup has run.
func TestTheDatabaseKeepsTheFloor(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		ctx := t.Context()
		source := b.DSN(t)
		store, bare := harness.NewStore(t, b.Fenced(t, source)), b.Raw(t, source)
		if err := store.Setup(ctx); err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]int64{"books": 90, "jobs/1": 9} {
			if err := store.Adopt(ctx, sqlfence.Token{Name: name, Value: value}); err != nil {
				t.Fatal(err)
			}
		}
		mustDelete(t, store, "jobs/1")
		for _, query := range reusing[b.Dialect] {
			if _, err := bare.Exec(query); err == nil {
				t.Errorf("%s passed", query)
			}
			bare = b.Raw(t, source) // the old connection may have an open transaction
			if got := strings.TrimPrefix(ledgerOf(t, bare), "books:90 sqlfence:floor:9"); got != "" && got != "books:90" {
				t.Fatalf("%s: the ledger has %s", query, got)
			}
		}
		harness.MustExec(t, bare, "INSERT INTO fencing_tokens VALUES ('jobs/1', 0)")
		for _, query := range []string{"UPDATE fencing_tokens SET token = 9 WHERE name = 'jobs/1'", "UPDATE fencing_tokens SET token = token + 1 WHERE name = 'jobs/1'"} {
			if _, err := bare.Exec(query); err == nil {
				t.Errorf("%s passed", query)
			}
		}
		harness.MustExec(t, bare, "DELETE FROM fencing_tokens WHERE name = 'jobs/1'") // the name has no token
		harness.MustExec(t, bare, "INSERT INTO fencing_tokens VALUES ('jobs/1', 10)")
		for i, ruin := range ruins[b.Dialect] {
			for _, query := range ruin {
				harness.MustExec(t, bare, query)
			}
			if left, err := store.Delete(ctx, "jobs/1"); err == nil || !strings.Contains(err.Error(), "Setup") {
				t.Errorf("%q: Delete left %q, %v", ruin, left, err)
			}
			if i == 0 {
				if err := store.Setup(ctx); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if _, err := bare.Exec("INSERT INTO fencing_tokens VALUES ('jobs/2', 1)"); err == nil {
				t.Error("a used token passed with triggers of another version")
			}
		}
		if err := store.Setup(ctx); err != nil {
			t.Fatal(err)
		}
		mustDelete(t, store, "jobs/1")
		if got := harness.IssueToken(t, store, "jobs/1"); got != 11 {
			t.Errorf("Issue: %d, want 11", got)
		}
	})
}

// Names are created and deleted in batches of 100, and some are created again. The ledger holds exactly the existing
// names, and no token is issued twice. A long run creates 10^7 names.
func TestTenMillionNames(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		const kept = 50 // batches
		batches := 2*kept + 2
		if b.Name == "mattn" && !testing.Short() {
			batches = 100_000
		}
		dsn := b.DSN(t)
		if b.Name == "mattn" {
			dsn += "&_synchronous=OFF"
		}
		db := b.Raw(t, dsn)
		store := setupStore(t, db)
		issue := func(batch int) (names []string, token int64) {
			t.Helper()
			for i := range 100 {
				names = append(names, fmt.Sprintf("jobs/%d", 100*batch+i))
			}
			issued, err := store.IssueMany(t.Context(), names...)
			if err != nil {
				t.Fatal(err)
			}
			return names, issued[0].Value
		}
		there, served, most := make([][]string, kept), make([]int64, kept), 0
		for batch := range batches {
			at := batch % kept
			if gone := batch - kept; gone >= 0 {
				mustDelete(t, store, there[at]...)
				if batch%100 == 0 { // deleted names get a token again
					names, token := issue(gone)
					if token <= served[at] {
						t.Fatalf("%s came back with the token %d, and had %d", names[0], token, served[at])
					}
					mustDelete(t, store, names...)
					var rows int
					if err := db.QueryRow("SELECT count(*) FROM fencing_tokens").Scan(&rows); err != nil {
						t.Fatal(err)
					}
					most = max(most, rows)
				}
			}
			there[at], served[at] = issue(batch)
		}
		if limit := 100*kept + 2; most > limit {
			t.Errorf("%d rows, want at most %d", most, limit)
		}
		t.Logf("%d names, at most %d rows", 100*batches, most)
	})
}

// Delete refuses if a policy could hide the floor from a role. A token below 0 can't be raised to a token below the
// floor.
func TestDeleteKeepsTheFloorInSight(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		ctx := t.Context()
		plain, store := b.Raw(t, dsn), setupStore(t, db)
		for range 10 {
			if _, err := store.Issue(ctx, "books"); err != nil {
				t.Fatal(err)
			}
		}
		if b.Dialect == sqlfence.Postgres {
			harness.MustExec(t, plain, "ALTER TABLE fencing_tokens ENABLE ROW LEVEL SECURITY")
			if _, err := store.Delete(ctx, "books"); err == nil || !strings.Contains(err.Error(), "row-level security") {
				t.Errorf("with a policy: %v", err)
			}
			harness.MustExec(t, plain, "ALTER TABLE fencing_tokens DISABLE ROW LEVEL SECURITY")
		}
		if _, err := store.Delete(ctx, "books"); err != nil {
			t.Fatal(err)
		}
		harness.MustExec(t, plain, "INSERT INTO fencing_tokens (name, token) VALUES ('books', -1)")
		if _, err := plain.ExecContext(ctx, "UPDATE fencing_tokens SET token = 3 WHERE name = 'books'"); err == nil {
			t.Error("a token under the floor landed")
		}
		if _, err := store.Repair(ctx, 5); err != nil {
			t.Error(err)
		}
		harness.MustExec(t, plain, "UPDATE fencing_tokens SET token = 0 WHERE name = 'books'")
		if token, err := store.Issue(ctx, "books"); err != nil || token.Value <= 10 {
			t.Errorf("%v, %v", token, err)
		}
	})
}
