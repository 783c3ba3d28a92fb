package tidb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/verify"
)

// wantRefused fails the test unless err is an UnguardableError whose reason contains reason.
func wantRefused(t *testing.T, what string, err error, reason string) {
	t.Helper()
	if refused := (*sqlfence.UnguardableError)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Reason, reason) {
		t.Errorf("%s: %v, want a refusal with %q", what, err, reason)
	}
}

// On TiDB a write under Ledger needs a query before it, so texts of several statements are refused. So are leases that end with their session.
func TestRefusedOnTiDB(t *testing.T) {
	dsn, plain := setup(t)
	reset(t, plain)
	db := fence(t, dsn, sqlfence.Ledger())
	several := fence(t, harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.MultiStatements = true }), sqlfence.Ledger())
	_, err := several.ExecContext(holding(9), "SELECT 1; UPDATE books SET price = 2 WHERE id = 1")
	wantRefused(t, "several statements", err, "by itself")
	var price int
	if err := plain.QueryRow("SELECT SUM(price) FROM books WHERE id = 1").Scan(&price); err != nil || price != 1 {
		t.Errorf("a refused statement has changed the price to %d: %v", price, err)
	}

	locks, err := lease.New(db)
	if err != nil {
		t.Fatal(err)
	}
	if err := locks.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := locks.Acquire(t.Context(), "books", lease.Ephemeral()); !errors.Is(err, lease.ErrNoSessions) {
		t.Errorf("Ephemeral: %v", err)
	}
	found, err := verify.Check(t.Context(), db)
	if err != nil {
		t.Error(err)
	}
	for _, f := range found {
		if f.Code == "wrong-server" {
			t.Errorf("verify.Check found %v", f)
		}
	}
}

// Settings under which a statement isn't atomic are refused, even if a plain SET has changed them.
func TestRefusedSettings(t *testing.T) {
	dsn, plain := setup(t)
	for _, set := range []string{"tidb_constraint_check_in_place_pessimistic = 0", "tidb_dml_type = 'bulk'",
		"tidb_batch_insert = 1", "tidb_batch_delete = 1", "tidb_batch_commit = 1"} {
		reset(t, plain)
		db := fence(t, dsn, sqlfence.RowFence("fence_token"))
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		exec(t, withContext{conn, holding(8)}, "UPDATE books SET price = 2 WHERE id = 1")
		name, _, _ := strings.Cut(set, " ")
		if _, err := conn.ExecContext(t.Context(), "SET "+set); err != nil {
			t.Logf("%s: %v", set, err)
			continue
		}
		_, err = conn.ExecContext(holding(9), "UPDATE books SET price = 3 WHERE id = 1")
		wantRefused(t, set, err, name)
		_ = conn.Close()
	}
}

type withContext struct {
	execer
	ctx context.Context
}

func (w withContext) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	return w.execer.ExecContext(w.ctx, query, args...)
}

// A key that an UPDATE assigns through a function can't be compared, because the assignments in SET see the row's old
// values. LAST_INSERT_ID of a string yields 0. In an upsert the guard sees the assigned key.
func TestKeysThatAFunctionChanges(t *testing.T) {
	dsn, plain := setup(t)
	for name, rule := range map[string]sqlfence.Rule{
		"row fence": sqlfence.RowFence("fence_token"), "claim": sqlfence.Claim("version"),
	} {
		db := fence(t, session{params: map[string]string{"sql_mode": "''"}}.with(t, dsn), rule, sqlfence.Key("isbn"))
		ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books/a", Value: 1})
		for query, want := range map[string]error{
			"UPDATE books SET isbn = LAST_INSERT_ID(isbn) WHERE id = 1":                                              sqlfence.ErrUnguardable,
			"UPDATE books b JOIN pens p ON p.id = b.id SET b.isbn = LAST_INSERT_ID(b.isbn) WHERE b.id = 1":           sqlfence.ErrUnguardable,
			"INSERT INTO books (isbn, id) VALUES ('a', 1) ON DUPLICATE KEY UPDATE isbn = LAST_INSERT_ID(isbn)":       sqlfence.ErrOutOfScope,
			"INSERT INTO books (isbn, id) VALUES ('a', 1) ON DUPLICATE KEY UPDATE isbn = LAST_INSERT_ID(books.isbn)": sqlfence.ErrOutOfScope,
		} {
			reset(t, plain)
			exec(t, plain, "UPDATE books SET fence_token = 0")
			before := content(t, plain)
			_, err := db.ExecContext(ctx, query)
			if after := content(t, plain); after != before || !errors.Is(err, want) {
				t.Errorf("%s: %s: %v: it left %s", name, query, err, after)
			}
		}
		exec(t, withContext{db, ctx}, "UPDATE books SET isbn = 'a', price = 3 WHERE id = 1")
	}
}

// own are statements that may write to a table, and that TiDB alone has or executes in a different way.
var own = []string{
	"TRACE UPDATE books SET price = 666 WHERE id = 1",
	"TRACE FORMAT = 'row' UPDATE books SET price = 666 WHERE id = 1",
	"EXPLAIN ANALYZE UPDATE books SET price = 666 WHERE id = 1",
	"EXPLAIN ANALYZE FORMAT = 'brief' UPDATE books SET price = 666 WHERE id = 1",
	"DESC ANALYZE DELETE FROM books",
	"DESCRIBE ANALYZE DELETE FROM books",
	"PLAN REPLAYER DUMP EXPLAIN ANALYZE UPDATE books SET price = 666 WHERE id = 1",
	"BATCH ON id LIMIT 1 UPDATE books SET price = 666",
	"BATCH LIMIT 1 DELETE FROM books",
	"BATCH ON id LIMIT 1 DRY RUN UPDATE books SET price = 666",
	"WITH q AS (SELECT 1 AS id) UPDATE books JOIN q ON books.id = q.id SET books.price = 666",
	"WITH q AS (SELECT 1 AS id) DELETE books FROM books JOIN q ON books.id = q.id",
	"WITH q AS (SELECT 1 AS id) UPDATE books SET price = 666 WHERE id IN (SELECT id FROM q)",
	"REPLACE INTO books (id, price) VALUES (1, 666)",
	"REPLACE books SET id = 1, price = 666",
	"INSERT INTO books SET id = 1, price = 0 ON DUPLICATE KEY UPDATE price = 666",
	"INSERT INTO books (id) VALUES (1) AS n ON DUPLICATE KEY UPDATE price = 666",
	"INSERT INTO books (id) SELECT 1 ON DUPLICATE KEY UPDATE price = 666",
	"INSERT IGNORE INTO books (id) VALUES (1) ON DUPLICATE KEY UPDATE price = 666",
	"UPDATE IGNORE books SET price = 666 WHERE id = 1",
	"UPDATE LOW_PRIORITY books SET price = 666",
	"UPDATE HIGH_PRIORITY books SET price = 666",
	"UPDATE DELAYED books SET price = 666",
	"UPDATE HIGH_PRIORITY IGNORE books b JOIN pens p ON p.id = b.id SET b.price = 666",
	"DELETE HIGH_PRIORITY FROM books",
	"DELETE DELAYED QUICK books FROM books JOIN pens ON pens.id = books.id",
	"REPLACE HIGH_PRIORITY books (id, price) VALUES (1, 666)",
	"UPDATE /*+ USE_INDEX(books, price) */ books SET price = 666 WHERE price < 3",
	"UPDATE /*+ SET_VAR(tidb_dml_type=bulk) */ books SET price = 666",
	"UPDATE books SET price = 666 /*T! WHERE id = 1 */",
	"UPDATE books SET price = 666 /*T![x] , fence_token = 0 */",
	"/*T! UPDATE books SET price = 666 */",
	"/*T![clustered_index] UPDATE books SET price = 666 */",
	"UPDATE books SET price = 666 ORDER BY RAND() LIMIT 1",
	"UPDATE books b, pens p SET b.price = 666 WHERE b.id = p.id",
	"UPDATE pens p LEFT JOIN books b ON b.id = p.id SET b.price = 666",
	"DELETE b FROM books b JOIN pens p ON p.id = b.id",
	"DELETE FROM b USING books b LEFT JOIN pens p ON p.id = b.id",
	"DELETE IGNORE FROM books ORDER BY price LIMIT 1",
	"UPDATE books SET price = 666 WHERE id = (SELECT MIN(id) FROM pens)",
	"UPDATE books SET price = 666 WHERE EXISTS (SELECT 1 FROM pens WHERE pens.id = books.id)",
	"UPDATE books SET price = (SELECT 655 + MIN(price) FROM pens)",
	"UPDATE books SET fence_token = 0",
	"UPDATE books PARTITION (p0) SET price = 666",
	"LOAD DATA LOCAL INFILE 'books.csv' REPLACE INTO TABLE books",
	"IMPORT INTO books FROM 'books.csv'",
	"IMPORT INTO books FROM SELECT 1, 'a', 666, 0, 0, NULL, NULL, NULL",
	"TRUNCATE books",
	"TRUNCATE TABLE books",
	"DROP TABLE books",
	"RENAME TABLE pens TO pencils, books TO pens",
	"ALTER TABLE books DROP COLUMN fence_token",
	"ALTER TABLE books EXCHANGE PARTITION p0 WITH TABLE pens",
	"ALTER TABLE books TTL = since + INTERVAL 1 DAY",
	"FLASHBACK TABLE books TO pens2",
	"RECOVER TABLE books",
	"ADMIN CLEANUP INDEX books price",
	"PREPARE p FROM 'UPDATE books SET price = 666'",
	"SET @q = 'UPDATE books SET price = 666'; PREPARE p FROM @q; EXECUTE p",
	"CREATE BINDING FOR UPDATE books SET price = 1 USING UPDATE /*+ SET_VAR(tidb_dml_type=bulk) */ books SET price = 1",
	"CREATE SESSION BINDING FOR DELETE FROM books USING DELETE /*+ MAX_EXECUTION_TIME(1) */ FROM books",
	"CREATE VIEW shelf AS SELECT * FROM books",
	"CALL p()",
	"DO RELEASE_LOCK('a')",
	"EXECUTE IMMEDIATE 'UPDATE books SET price = 666'",
}

// Under a stale token none of these statements may change a row or take effect in part. Some servers don't know some of
// them.
func TestStatementsWithAStaleTokenChangeNothing(t *testing.T) {
	dsn, plain := setup(t)
	db := fence(t, dsn, sqlfence.RowFence("fence_token"))
	kinds := map[string]int{}
	for _, query := range own {
		reset(t, plain)
		exec(t, plain, "UPDATE books SET fence_token = 9")
		before := content(t, plain)
		_, err := db.ExecContext(holding(5), query)
		kind := "passed"
		switch {
		case errors.Is(err, sqlfence.ErrStale):
			kind = "stale"
		case errors.Is(err, sqlfence.ErrUnguardable):
			kind = "refused"
		case err != nil:
			kind = fmt.Sprint("the server's error ", number(err))
		}
		kinds[kind]++
		t.Logf("%s: %s: %v", kind, query, err)
		if after := content(t, plain); after != before {
			t.Errorf("%s: %v: A STALE WRITE LANDED: %s, before %s", query, err, after, before)
		}
	}
	t.Logf("%v", kinds)
}

func content(t *testing.T, db *sql.DB) (all string) {
	t.Helper()
	const query = "SELECT GROUP_CONCAT(CONCAT_WS(':', id, isbn, price, fence_token, version) ORDER BY id) FROM books"
	if err := db.QueryRow(query).Scan(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// This test shows why TiDB needs a query before a write under Ledger: a subquery on another row doesn't see a change
// that was committed while the statement was waiting.
func TestWhatIsComparedWithAnotherRowIsOutdated(t *testing.T) {
	dsn, plain := setup(t)
	landed := 0
	for _, s := range sessions {
		reset(t, plain)
		exec(t, plain, "REPLACE INTO fencing_tokens VALUES ('books', 5)")
		db := open(t, s.with(t, dsn))
		const check = "UPDATE books SET price = 666 WHERE id = 1 AND (SELECT MAX(token) FROM fencing_tokens WHERE name = 'books') <= 5"
		o, _ := run(t, plain, "nnoono", &part{"bwc", check, context.Background(), db},
			&part{"bwc", "UPDATE books JOIN fencing_tokens SET price = 6, token = 6 WHERE id = 1 AND name = 'books'", context.Background(), db})
		if o.landed {
			landed++
		}
		t.Logf("%s: landed %v, %v", s.name, o.landed, o.failed)
	}
	if landed == 0 {
		t.Error("it held everywhere; the guard may compare in the statement")
	}
}
