package negative_test

import (
	"maps"
	"strings"
	"testing"
)

// TestLeaseProcesses must be able to fail: here every process uses its own clock, up to 400 ms ahead of the server's. A
// test within one process wouldn't notice that.
func TestLeaseProcessesCanFail(t *testing.T) {
	t.Parallel() // mostly waits
	needed(t)
	const ahead = `strconv.Itoa(os.Getpid()*97%400)`
	clock := func(file, now, late string) map[string]string {
		return replaced(t, file, func(source string) string {
			source = strings.Replace(source, "import (\n", "import (\n\"os\"\n", 1)
			if !strings.Contains(source, `"strconv"`) {
				source = strings.Replace(source, "import (\n", "import (\n\"strconv\"\n", 1)
			}
			return strings.Replace(source, now, late, 1)
		})
	}
	files := clock("internal/dialect/sqlite/text.go", `"CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"`,
		`"(CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) + " + `+ahead+` + ")"`)
	maps.Copy(files, clock("internal/dialect/postgres/text.go", `"pg_catalog.clock_timestamp()"`,
		`"(pg_catalog.clock_timestamp() + interval '" + `+ahead+` + " milliseconds')"`))
	maps.Copy(files, clock("internal/dialect/mysql/text.go", `return "CASE WHEN TIMESTAMPDIFF(MICROSECOND, NOW(6)`,
		`return `+ahead+` + "000 + CASE WHEN TIMESTAMPDIFF(MICROSECOND, NOW(6)`))
	wantFailing(t, "lease", files, map[string][]string{"TestLeaseProcesses": all})
}
