package pgx_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// If a text is the name of a prepared statement, a word or another statement, pgx runs the prepared statement for it.
// Here a hook of the pool prepares writes without sqlfence. A write by the name of a prepared statement is guarded all
// the same.
func TestNamesOfPreparedStatementsAreGuarded(t *testing.T) {
	const counts = "SELECT $1::bigint"
	names := map[string]string{"cheaper": harness.SetPrice, "make it cheap": harness.SetPrice, "SELECT 1": harness.SetPrice, "count": counts}
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		config, err := pgx.ParseConfig(s.Source)
		if err != nil {
			t.Fatal(err)
		}
		base := stdlib.GetConnector(*config, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
			for name, text := range names {
				if _, err := c.Prepare(ctx, name, text); err != nil {
					return err
				}
			}
			return nil
		}))
		db, err := sqlfence.OpenDB(base, harness.Books(sqlfence.RowFence("fence_token")))
		harness.CloseAtEnd(t, db, err)
		for name, text := range names {
			if text == counts {
				if _, err := db.ExecContext(t.Context(), name, 1); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			staleThenFresh(t, s, name, func(ctx context.Context) error {
				_, err := db.ExecContext(ctx, name, 30, 1)
				return err
			})
			if _, err := db.ExecContext(t.Context(), name, 40, 1); !errors.Is(err, sqlfence.ErrNoFence) {
				t.Errorf("%s without a token: %v", name, err)
			}
		}
	})
}
