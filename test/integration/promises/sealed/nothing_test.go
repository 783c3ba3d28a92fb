package sealed_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Seal and Unseal return an error if no registered table has Sealed, because the caller believes that a table is
// sealed.
func TestSealWithoutASealedTableIsRefused(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.Networked() {
			t.Skip("no table can be sealed")
		}
		db := harness.NewShop(t, b, sqlfence.RowFence("fence_token")).DB
		for name, call := range map[string]func(context.Context, *sql.DB) error{
			"Seal":      schema.Seal,
			"Unseal":    func(ctx context.Context, db *sql.DB) error { return schema.Unseal(ctx, db) },
			"SealSQL":   func(_ context.Context, db *sql.DB) error { _, err := schema.SealSQL(db); return err },
			"UnsealSQL": func(_ context.Context, db *sql.DB) error { _, err := schema.UnsealSQL(db); return err },
		} {
			if err := call(t.Context(), db); !errors.Is(err, sqlfence.ErrInvalid) || !strings.Contains(err.Error(), "Sealed()") {
				t.Errorf("%s: %v, want ErrInvalid", name, err)
			}
		}
	})
}
