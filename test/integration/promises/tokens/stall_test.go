package tokens_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The network stalls for a while. Soon afterwards tokens are issued as before. No token is issued for a caller that had
// given up, unless its statement was already sent.
func TestIssueAfterANetworkThatStoodStill(t *testing.T) {
	harness.EachStall(t, func(t *testing.T, b harness.Base, stall time.Duration, pool int) {
		dsn := b.DSN(t)
		admin := b.Raw(t, dsn)
		if err := harness.NewStore(t, admin).Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		network := harness.NewStall(t, dsn)
		db := b.Raw(t, network.DSN)
		db.SetMaxOpenConns(pool)
		returned := network.StandStill(t, b, admin, db, stall, func(db *sql.DB) func(context.Context, int) bool {
			store := harness.NewStore(t, db)
			return func(ctx context.Context, caller int) bool {
				_, err := store.Issue(ctx, fmt.Sprint("crowd/", caller/2)) // two callers share a name
				return err == nil
			}
		})
		var issued int64
		if err := admin.QueryRow("SELECT SUM(token) FROM fencing_tokens WHERE name LIKE 'crowd/%'").Scan(&issued); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d tokens issued, %d returned", issued, returned)
		// On a machine that answers most callers after their deadlines, most statements are under way when these end.
		if most := returned + returned/2 + int64(2*harness.Callers()+8*pool); issued > most && returned > 500 {
			t.Errorf("%d tokens issued, %d returned: more than statements that were under way", issued, returned)
		}
	})
}
