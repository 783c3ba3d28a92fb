package stmtcache_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Several callers send many texts, with open rows, refusals, failures and changes of the schema. In the end every
// statement of the driver is closed.
func TestEveryStatementIsClosed(t *testing.T) {
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		s.Reset(t, 5)
		counter := &harness.Counter{Quiet: true}
		db, err := sqlfence.OpenDB(b.Counting(t, s.Source, counter), harness.Books(sqlfence.RowFence("fence_token")), sqlfence.WithStatementCache(4))
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(4)
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				ctx, old := harness.Holding(t, 5), harness.Holding(t, 4)
				for range 150 {
					query := fmt.Sprintf("UPDATE books SET price = ? + %d WHERE id = ?", rand.IntN(8))
					switch rand.IntN(12) {
					case 0:
						_, _ = db.ExecContext(old, query, 1, 1)
					case 1:
						_, _ = db.ExecContext(ctx, query, nil, 1)
					case 2:
						_, _ = db.ExecContext(sqlfence.Bypass(ctx, "migration"), "CREATE INDEX IF NOT EXISTS prices ON books (price)")
					case 3, 4:
						tx, err := db.BeginTx(ctx, nil)
						if err != nil {
							continue
						}
						rows, err := tx.QueryContext(ctx, query+" RETURNING id", 1, 1)
						if err == nil {
							_, _ = tx.ExecContext(ctx, query, 2, 2)
							_ = rows.Close()
						}
						_ = tx.Rollback()
					default:
						_, _ = db.ExecContext(ctx, query, 1, 1)
					}
				}
			})
		}
		callers.Wait()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		for _, leak := range counter.Tally.Leaks(0) {
			t.Error(leak)
		}
		t.Log(&counter.Tally)
	})
}
