package verify_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A foreign table is found if registered, under a registered view, and as a part of a sealed table. Nothing queries the
// table's rows: the remote server is unreachable.
func TestForeignTables(t *testing.T) {
	w := newWorld(t, harness.Bases[1])
	sealed := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Sealed()}
	var installed bool
	if err := w.plain.QueryRow("SELECT count(*) > 0 FROM pg_available_extensions WHERE name = 'postgres_fdw'").Scan(&installed); err != nil {
		t.Fatal(err)
	}
	if !installed {
		need.Missing(t, "postgres_fdw", "the server has no postgres_fdw")
	}
	w.exec(t, "CREATE EXTENSION postgres_fdw", "CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '1')",
		"CREATE FOREIGN TABLE stock (id integer, price integer, fence_token bigint NOT NULL DEFAULT 0) SERVER elsewhere",
		"CREATE VIEW shelf AS SELECT * FROM stock", "CREATE VIEW upper_shelf AS SELECT * FROM shelf WHERE id > 10",
		"CREATE VIEW sums AS SELECT id, sum(price) AS price, 0::bigint AS fence_token FROM stock GROUP BY id")
	wantOne(t, saying(w.news(t, sqlfence.WithTable("stock", both...)), "is a foreign table"), slog.LevelError, "storage")
	for view, want := range map[string]int{"shelf": 1, "upper_shelf": 1, "sums": 0} {
		found := saying(w.news(t, sqlfence.WithTable(view, both...)), "foreign table")
		if len(found) != want || want > 0 && !strings.Contains(found[0].Problem, "Behind "+view+" there is the foreign table stock") {
			t.Errorf("%s: found %v", view, found)
		}
	}
	w.seal(t, sealed...)
	w.exec(t, "CREATE FOREIGN TABLE far_books () INHERITS (books) SERVER elsewhere")
	wantOne(t, w.news(t, harness.Books(sealed...)), slog.LevelWarn, "storage")
}

// The changes that a subscription applies aren't checked by a seal.
func TestSubscriptions(t *testing.T) {
	w := newWorld(t, harness.Bases[1])
	w.exec(t, "CREATE PUBLICATION all_books FOR TABLE books", "CREATE PUBLICATION all_pens FOR TABLE pens")
	for _, name := range []string{"all_pens", "all_books"} {
		w.exec(t, "CREATE SUBSCRIPTION from_"+name+" CONNECTION '"+strings.ReplaceAll(w.dsn, "'", "''")+"' PUBLICATION "+name+" WITH (slot_name = NONE, create_slot = false, enabled = false, copy_data = false)")
		t.Cleanup(func() {
			if _, err := w.plain.Exec("DROP SUBSCRIPTION from_" + name); err != nil {
				t.Error(err)
			}
		})
	}
	wantSubscription := func(rules ...sqlfence.Rule) {
		t.Helper()
		found := w.news(t, harness.Books(rules...))
		wantOne(t, found, slog.LevelWarn, "side-effect")
		if len(found) == 1 && !strings.Contains(found[0].Problem, "from_all_books") {
			t.Errorf("found %v", found)
		}
	}
	wantSubscription(both...)
	sealed := []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Sealed()}
	w.seal(t, sealed...)
	wantSubscription(sealed...)
}
