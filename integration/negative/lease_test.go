package negative_test

import (
	"maps"
	"strings"
	"testing"
)

// The test of the processes must be able to fail: here every process trusts a
// clock of its own, up to 400 ms ahead of the server's, which no test with a
// single process would notice.
func TestLeaseProcessesCanFail(t *testing.T) {
	t.Parallel() // it mostly waits
	needed(t)
	files := replaced(t, "internal/sqltext/sqlite.go", func(source string) string {
		return strings.Replace(source, `"CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"`, `"(CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) + " + ahead + ")"`, 1)
	})
	maps.Copy(files, replaced(t, "internal/sqltext/postgres.go", func(source string) string {
		source = strings.Replace(source, `"strconv"`, `"math/rand/v2"; "strconv"`, 1) + "\nvar ahead = strconv.Itoa(rand.IntN(400))\n"
		return strings.Replace(source, `"pg_catalog.clock_timestamp()"`, `"(pg_catalog.clock_timestamp() + interval '" + ahead + " milliseconds')"`, 1)
	}))
	wantFailing(t, "lease", asInstalled, files, map[string][]string{"TestLeaseProcesses": unlike})
}
