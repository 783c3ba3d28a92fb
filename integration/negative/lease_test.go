package negative_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/integration/harness"
)

// The test of the processes must be able to fail: here every process trusts a
// clock of its own, up to 400 ms ahead of the server's, which no test with a
// single process would notice.
func TestLeaseNegativeControl(t *testing.T) {
	if os.Getenv(inControlEnv) != "" || testing.Short() {
		t.Skip("runs the go command")
	}
	harness.PostgresDSN(t)
	dir := strings.TrimSpace(string(goCommand(t, "list", "-f", "{{.Dir}}", "github.com/sqlfence/sqlfence/lease")))
	path := filepath.Join(dir, "sql.go")
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := string(source)
	for _, replace := range [][2]string{
		{`"context"`, `"context"; "math/rand/v2"`},
		{"func expand(text string) string {", "var ahead = strconv.Itoa(rand.IntN(400))\n\n" + `func expand(text string) string {
			text = strings.ReplaceAll(text, "clock_timestamp()", "(clock_timestamp() + interval '" + ahead + " milliseconds')")
			text = strings.ReplaceAll(text, "{now}", "({now} + " + ahead + ")")`},
	} {
		before := changed
		changed = strings.Replace(changed, replace[0], replace[1], 1)
		if changed == before {
			t.Fatalf("%s has no %q", path, replace[0])
		}
	}
	with := filepath.Join(t.TempDir(), "sql.go")
	if err := os.WriteFile(with, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	wantFailing(t, "lease", map[string]string{path: with}, map[string][]string{"TestLeaseProcesses": all})
}
