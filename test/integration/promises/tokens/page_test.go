package tokens_test

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// By the statements of docs/tokens.md a test database starts at token 1 again, and its writes are guarded as before.
func TestTestDatabaseStartsAgain(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/tokens.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "```sql\n")
	block, _, _ = strings.Cut(block, "```")
	statements := strings.Split(strings.TrimSpace(block), "\n")
	if !found || len(statements) < 3 {
		t.Fatalf("the page has %q", statements)
	}
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		dsn := b.DSN(t)
		plain := b.Raw(t, dsn)
		for _, query := range []string{
			"CREATE TABLE books (id bigint PRIMARY KEY, price bigint, fence_token bigint NOT NULL DEFAULT 0)",
			"INSERT INTO books (id, price) VALUES (1, 10)",
		} {
			if _, err := plain.ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			runOnce(t, b, dsn)
			for _, query := range statements {
				if _, err := plain.ExecContext(t.Context(), query); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
			}
		}
	})
}

// runOnce is a program that issues the tokens 1 to 3 and writes with the last one.
func runOnce(t *testing.T, b harness.Base, dsn string) {
	t.Helper()
	db := b.Fenced(t, dsn, harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
	defer db.Close()
	harness.NewLeases(t, db)
	store := setupStore(t, db)
	for want := range int64(3) {
		if got := harness.IssueToken(t, store, "books"); got != want+1 {
			t.Errorf("Issue: %d, want %d", got, want+1)
		}
	}
	for value, passes := range map[int64]bool{2: false, 3: true} {
		_, err := db.ExecContext(harness.Holding(t, value), "UPDATE books SET price = 20 WHERE id = 1")
		if (err == nil) != passes {
			t.Errorf("a write with token %d: %v", value, err)
		}
	}
}

// TestSpaceOfAName measures the figures of docs/data/ledger.md, with fewer names in a short run.
func TestSpaceOfAName(t *testing.T) {
	const most = 250
	names := 20_000
	if testing.Short() {
		names = 2_000
	}
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if !b.IsUsual() {
			t.Skip("the space is the database's")
		}
		dsn := b.DSN(t)
		db := b.Raw(t, dsn)
		store := setupStore(t, db)
		before := ledgerBytes(t, b, db)
		for round := range 3 {
			for first := 0; first < names; first += 100 {
				var some []string
				for i := range 100 {
					some = append(some, fmt.Sprintf("books/%06d", first+i))
				}
				if _, err := store.IssueMany(t.Context(), some...); err != nil {
					t.Fatal(err)
				}
			}
			got := (ledgerBytes(t, b, db) - before) / int64(names)
			t.Logf("%d bytes a name after %d tokens of each", got, round+1)
			if got > most {
				t.Errorf("a name takes %d bytes after %d tokens, want at most %d", got, round+1, most)
			}
		}
	})
}

// ledgerBytes returns the size of the ledger with its index, after the database has removed dead rows.
func ledgerBytes(t *testing.T, b harness.Base, db *sql.DB) (size int64) {
	t.Helper()
	tidy, query := "VACUUM", "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
	switch b.Dialect {
	case sqlfence.Postgres:
		tidy, query = "VACUUM fencing_tokens", "SELECT pg_total_relation_size('fencing_tokens')"
	case sqlfence.MySQL:
		tidy = "ANALYZE TABLE fencing_tokens"
		query = "SELECT data_length + index_length FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'fencing_tokens'"
	}
	if _, err := db.ExecContext(t.Context(), tidy); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRowContext(t.Context(), query).Scan(&size); err != nil {
		t.Fatal(err)
	}
	return size
}
