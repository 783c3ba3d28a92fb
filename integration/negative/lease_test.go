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
	maps.Copy(files, replaced(t, "internal/sqltext/mysql.go", func(source string) string {
		source = strings.Replace(source, `"strconv"`, `"os"; "strconv"`, 1) // what asks for the time may come before ahead
		return strings.Replace(source, `"TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"`,
			`"(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + " + strconv.Itoa(os.Getpid()*97%400) + "000)"`, 1)
	}))
	wantFailing(t, "lease", asInstalled, files, map[string][]string{"TestLeaseProcesses": all})
}
