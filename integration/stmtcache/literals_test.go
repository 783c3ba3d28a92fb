package stmtcache_test

import (
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
)

// PostgreSQL reads a constant when a statement is prepared: what now is, or in which time
// zone a time is. By text that is each time.
func TestConstantsAreReadEachTime(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Name != "pq" {
			t.Skip("SQLite's constants are what they say, and pgx itself keeps statements")
		}
		s := harness.NewShop(t, b)
		s.Exec(t, "ALTER TABLE books ADD COLUMN at timestamptz")
		s.Reset(t, 5)
		db := b.Fenced(t, s.Source, harness.Books(sqlfence.RowFence("fence_token")), sqlfence.WithStatementCache(8))
		ctx := harness.Holding(t, 5)
		for _, constant := range []string{"'now'", "' Today '", "'yesterday'", "$$tomorrow$$", "E'\\x6eow'", "U&'\\006eow'", "timestamptz '2026-01-02 03:04'", "timestamptz 'no'\n'w'", "$a$2026-01-02$a$"} {
			c, err := db.Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var seen [2]string
			for i, zone := range []string{"Etc/GMT+11", "Etc/GMT-11"} {
				if _, err := c.ExecContext(ctx, "SELECT set_config('TimeZone', $1, false)", zone); err != nil {
					t.Fatal(err)
				}
				if _, err := c.ExecContext(ctx, "UPDATE books SET at = "+constant+" WHERE id = $1", 1); err != nil {
					t.Fatal(err)
				}
				if err := s.Plain.QueryRow("SELECT at FROM books WHERE id = 1").Scan(&seen[i]); err != nil {
					t.Fatal(err)
				}
			}
			if seen[0] == seen[1] {
				t.Errorf("%s is %s each time", constant, seen[0])
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
