package schema_test

import (
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// BenchmarkAddFence adds the column to a table of a million rows while eight writers write. It reports how long the
// slowest write took, in the second before and while the column was added. It compares AddFence with the plain ALTER
// TABLE, each alone and beside a transaction that has the table open for three seconds.
//
//	go test ./promises/schema -run '^$' -bench AddFence -benchtime 1x -count 5
func BenchmarkAddFence(b *testing.B) {
	ways := map[string]func(*sql.DB) error{
		"AddFence": func(db *sql.DB) error { return schema.AddFence(b.Context(), db, "books", "fence_token") },
		"plain": func(db *sql.DB) error {
			_, err := db.Exec("ALTER TABLE books ADD COLUMN fence_token bigint NOT NULL DEFAULT 0")
			return err
		},
	}
	for _, name := range []string{"pgx", "mysql"} {
		base := harness.Stores[slices.IndexFunc(harness.Stores, func(s harness.Base) bool { return s.Name == name })]
		b.Run(name, func(b *testing.B) {
			plain := base.Raw(b, base.DSN(b))
			plain.SetMaxIdleConns(20)
			fill(b, base, plain, 1_000_000)
			for _, held := range []time.Duration{0, 3 * time.Second} {
				for _, way := range []string{"AddFence", "plain"} {
					b.Run(way+" beside a transaction of "+held.String(), func(b *testing.B) {
						for range b.N {
							addBesideWriters(b, base, plain, held, ways[way])
						}
					})
				}
			}
		})
	}
}

func addBesideWriters(b *testing.B, base harness.Base, db *sql.DB, held time.Duration, add func(*sql.DB) error) {
	crowd := writers(b, base, db, 8, 1_000_000)
	time.Sleep(2 * time.Second) // warm
	crowd.longest.Store(0)
	time.Sleep(time.Second)
	before := time.Duration(crowd.longest.Swap(0))
	if held > 0 {
		tx, err := db.Begin()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tx.Exec("SELECT price FROM books WHERE id = 1"); err != nil { // locks no row
			b.Fatal(err)
		}
		time.AfterFunc(held, func() { _ = tx.Rollback() })
	}
	start := time.Now()
	if err := add(db); err != nil {
		b.Error(err)
	}
	took := time.Since(start)
	time.Sleep(100 * time.Millisecond) // writers that waited finish their writes
	if errs := crowd.end(); len(errs) > 0 {
		b.Errorf("%d writes failed, the first with %v", len(errs), errs[0])
	}
	b.ReportMetric(float64(before.Milliseconds()), "ms-longest-before")
	b.ReportMetric(float64(crowd.longest.Load())/1e6, "ms-longest-write")
	b.ReportMetric(float64(took.Milliseconds()), "ms-to-add")
	b.ReportMetric(0, "ns/op")
	harness.MustExec(b, db, "ALTER TABLE books DROP COLUMN fence_token")
}
