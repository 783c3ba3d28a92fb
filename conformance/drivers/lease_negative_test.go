package drivers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The test of the processes must be able to fail: here every process trusts a
// clock of its own, up to 400 ms ahead of the server's, which no test with a
// single process would notice.
func TestLeaseNegativeControl(t *testing.T) {
	if os.Getenv(inControlEnv) != "" || testing.Short() {
		t.Skip("runs the go command")
	}
	postgresDSN(t)
	dir := strings.TrimSpace(string(goCommand(t, "list", "-f", "{{.Dir}}", "github.com/sqlfence/sqlfence/internal/sqltext")))
	overlay := make(map[string]string)
	for file, replace := range map[string][2]string{
		"postgres.go": {`"pg_catalog.clock_timestamp()"`, `"(pg_catalog.clock_timestamp() + interval '" + ahead + " milliseconds')"`},
		"sqlite.go":   {`"CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"`, `"(CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) + " + ahead + ")"`},
	} {
		path := filepath.Join(dir, file)
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(source), replace[0], replace[1], 1)
		if changed == string(source) {
			t.Fatalf("%s has no %q", path, replace[0])
		}
		if file == "postgres.go" {
			changed = strings.Replace(changed, `"strconv"`, `"math/rand/v2"; "strconv"`, 1) + "\nvar ahead = strconv.Itoa(rand.IntN(400))\n"
		}
		overlay[path] = filepath.Join(t.TempDir(), file)
		if err := os.WriteFile(overlay[path], []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wantFailing(t, overlay, map[string][]string{"TestLeaseProcesses": all})
}
