//go:build linux

package adopting_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
)

// What PostgreSQL's own log has of a refused write.
func TestServerLog(t *testing.T) {
	for level, want := range map[string][]string{
		"error": {"ERROR:  ", "STATEMENT:  "}, // PostgreSQL's default
		"fatal": {"ERROR:  "},
	} {
		t.Run("log_min_error_statement "+level, func(t *testing.T) {
			s := harness.NewServer(t, "logging_collector = on\nlog_line_prefix = ''\nlog_min_error_statement = "+level+"\n")
			s.Start(t)
			pgx := harness.Base{Name: "pgx", DriverName: "pgx", Dialect: sqlfence.Postgres}
			harness.MustExec(t, pgx.Raw(t, s.DSN()), "CREATE TABLE books (id bigint PRIMARY KEY, price bigint, fence_token bigint NOT NULL DEFAULT 0)")
			harness.MustExec(t, pgx.Raw(t, s.DSN()), "INSERT INTO books VALUES (1, 10, 9)")

			db := pgx.Fenced(t, s.DSN(), harness.Books(sqlfence.RowFence("fence_token")))
			_, err := db.ExecContext(harness.Holding(t, 7), "UPDATE books SET price = $1 WHERE id = $2", 30, 1)
			if !errors.Is(err, sqlfence.ErrStale) {
				t.Fatal(err)
			}
			var found []string
			harness.Eventually(t, "the server's log", func() bool {
				lines := regexp.MustCompile(`(?m)^(ERROR|STATEMENT):  .*`).FindAllString(s.Ask(t, "SELECT pg_read_file(pg_current_logfile())"), -1)
				found = lines
				return len(lines) >= len(want)
			})
			for i, line := range found {
				if i >= len(want) || !strings.HasPrefix(line, want[i]) {
					t.Errorf("line %d is %q", i, line)
				}
				onPage(t, line)
			}
		})
	}
}
