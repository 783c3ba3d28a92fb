package negative_test

import (
	"strings"
	"testing"
)

// The test of the processes must be able to fail: here every process trusts a
// clock of its own, up to 400 ms ahead of the server's, which no test with a
// single process would notice.
func TestLeaseProcessesCanFail(t *testing.T) {
	t.Parallel() // it mostly waits
	needed(t)
	own := func(source string) string {
		for _, replace := range [][2]string{
			{`"context"`, `"context"; "math/rand/v2"`},
			{"func expand(text string) string {", "var ahead = strconv.Itoa(rand.IntN(400))\n\n" + `func expand(text string) string {
			text = strings.ReplaceAll(text, "clock_timestamp()", "(clock_timestamp() + interval '" + ahead + " milliseconds')")
			text = strings.ReplaceAll(text, "{now}", "({now} + " + ahead + ")")`},
		} {
			if !strings.Contains(source, replace[0]) {
				t.Fatalf("lease/sql.go has no %q", replace[0])
			}
			source = strings.Replace(source, replace[0], replace[1], 1)
		}
		return source
	}
	wantFailing(t, "lease", replaced(t, "lease/sql.go", own), map[string][]string{"TestLeaseProcesses": all})
}
