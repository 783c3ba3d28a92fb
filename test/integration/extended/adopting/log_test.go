//go:build linux

package adopting_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The parts of the server probe in the log that differ between processes and servers.
var (
	proofNonce   = regexp.MustCompile(`sqlfence:[A-Z2-7]{16}:server:`)
	proofVersion = regexp.MustCompile(`"version" : "[^"]*"`)
)

// docs/operations.md shows PostgreSQL's log entries of a new connection's first write when the write is refused as
// stale.
func TestServerLog(t *testing.T) {
	s := harness.NewServer(t, "logging_collector = on\nlog_filename = 'server.log'\nlog_line_prefix = ''\n")
	s.Start(t)
	pgx := harness.Base{Name: "pgx", DriverName: "pgx", Dialect: sqlfence.Postgres}
	harness.MustExec(t, pgx.Raw(t, s.DSN()), "CREATE TABLE books (id bigint PRIMARY KEY, price bigint, fence_token bigint NOT NULL DEFAULT 0)")
	harness.MustExec(t, pgx.Raw(t, s.DSN()), "INSERT INTO books VALUES (1, 10, 9)")
	before := 0
	for _, level := range []struct {
		setting string
		want    []string
	}{
		{"", []string{"ERROR:  ", "STATEMENT:  ", "ERROR:  ", "STATEMENT:  "}},
		{"&log_min_error_statement=fatal", []string{"ERROR:  ", "ERROR:  "}},
		{"", []string{"ERROR:  ", "STATEMENT:  ", "ERROR:  ", "STATEMENT:  "}}, // a late STATEMENT line would show here
	} {
		t.Run("default"+level.setting, func(t *testing.T) {
			db := pgx.Fenced(t, s.DSN()+level.setting, harness.Books(sqlfence.RowFence("fence_token")))
			_, err := db.ExecContext(harness.Holding(t, 7), "UPDATE books SET price = $1 WHERE id = $2", 30, 1)
			if !errors.Is(err, sqlfence.ErrStale) {
				t.Fatal(err)
			}
			var found []string
			harness.Eventually(t, "the server's log", func() bool {
				lines := regexp.MustCompile(`(?m)^(ERROR|STATEMENT):  .*`).FindAllString(s.Ask(t, "SELECT COALESCE(pg_read_file('log/server.log', 0, 1000000, true), '')"), -1)
				found = lines[before:]
				return len(found) >= len(level.want)
			})
			before += len(found)
			for i, line := range found {
				if i >= len(level.want) || !strings.HasPrefix(line, level.want[i]) {
					t.Errorf("line %d is %q", i, line)
				}
				if strings.HasPrefix(line, "ERROR:") {
					line = proofVersion.ReplaceAllString(proofNonce.ReplaceAllString(line, "sqlfence:nonce:server:"), `"version" : "…"`)
					inText(t, pageText(t, "operations.md", "## Errors in the server's log"), line)
				}
			}
		})
	}
}
