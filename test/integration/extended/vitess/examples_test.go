package vitess_test

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// example is a keyspace with one shard, which is empty before and after each test.
func example(t *testing.T) (dsn string) {
	t.Helper()
	empty(t, "example")
	t.Cleanup(func() { empty(t, "example") })
	return in(t, "example", nil)
}

// goRun runs a Go program in a folder, and returns its output.
func goRun(t *testing.T, folder string, args ...string) string {
	t.Helper()
	cmd := osexec.Command("go", append([]string{"run"}, args...)...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %v", args, err)
	}
	t.Logf("%s", out)
	return string(out)
}

// The program of README.md has the output of README.md, with MySQL's driver and SQL instead of SQLite's, and without
// Ledger.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(page), "```go\n")
	program, _, _ = strings.Cut(program, "```\n")
	_, want, _ := strings.Cut(string(page), "```text\n")
	want, _, _ = strings.Cut(want, "```\n")
	for sqlite, vitess := range map[string]string{
		`"modernc.org/sqlite"`: `"github.com/go-sql-driver/mysql"`,
		`"sqlite", "file:shop.db?_txlock=immediate&_pragma=busy_timeout(5000)"`: `"mysql", ` + strconv.Quote(example(t)),
		`, sqlfence.Ledger()`: ``,
		`$1`:                  `?`,
		`ON CONFLICT (id) DO UPDATE SET price = excluded.price`: `ON DUPLICATE KEY UPDATE price = VALUES(price)`,
	} {
		if strings.Count(program, sqlite) != 1 {
			t.Errorf("README.md's program doesn't have %s once", sqlite)
		}
		program = strings.ReplaceAll(program, sqlite, vitess)
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := goRun(t, ".", file); !strings.HasSuffix(out, want) {
		t.Errorf("the output doesn't end with README.md's:\n%s", want)
	}
}

// examples/books passes on a keyspace of one shard.
func TestBooks(t *testing.T) {
	cfg, err := mysql.ParseDSN(example(t))
	if err != nil {
		t.Fatal(err)
	}
	out := goRun(t, "../../../../examples", "./books", "-dsn", "mysql://"+cfg.User+":"+cfg.Passwd+"@"+cfg.Addr+"/"+cfg.DBName)
	if !strings.Contains(out, "OK: ") {
		t.Error("the example doesn't report OK")
	}
}
