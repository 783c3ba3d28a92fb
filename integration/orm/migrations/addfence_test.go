package migrations_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/schema"
)

// The column by sqlfence itself, on the database of a program that goes on.
func TestAddFence(t *testing.T) {
	add := func(ctx context.Context, db *sql.DB) error {
		if err := schema.AddFence(ctx, db, "books", "fence_token"); err != nil {
			return err
		}
		return nil
	}
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		source, db := fencedBooks(t, b)
		for _, db := range []*sql.DB{db, b.Raw(t, source)} {
			if err := add(t.Context(), db); err != nil {
				t.Error(err)
			}
		}
		wantMarked(t, db)
	})
}
