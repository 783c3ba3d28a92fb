package protocol_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The shell and Python lines in docs/recipes.md write under sqlfence run. After the next holder has taken a token, the
// same writes are refused as stale, and a write without a token is refused.
func TestRecipeOfOtherLanguages(t *testing.T) {
	p := programs[0] // Python
	p.need(t)
	need.Program(t, "psql")
	page, err := os.ReadFile("../../../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Other languages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?s)```[a-z]+\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 3 {
		t.Fatalf("the recipe has %d blocks", len(blocks))
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "sqlfence"), "github.com/sqlfence/sqlfence/cmd/sqlfence")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dsn := p.base.DSN(t)
	plain := p.base.Raw(t, dsn)
	harness.MustExec(t, plain, "CREATE TABLE books (id integer PRIMARY KEY, price integer)")
	harness.MustExec(t, plain, "INSERT INTO books VALUES (1, 10)")
	write("report.sh", "#!/bin/sh\n"+strings.Replace(blocks[1][1], "psql", "psql -v ON_ERROR_STOP=1", 1))
	write("report.py", "import os, psycopg\nwith psycopg.connect(os.environ['SQLFENCE_DSN']) as db:\n\t"+
		strings.ReplaceAll(strings.TrimSpace(blocks[2][1]), "\n", "\n\t"))
	run := func(script string, env ...string) (string, error) {
		c := exec.CommandContext(t.Context(), "sh", "-ec", script)
		c.Dir = dir
		c.Env = append(append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SQLFENCE_DSN="+postgresURL(t, dsn)), env...)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	_, commands, _ := strings.Cut(blocks[0][1], "\n") // omits the first line, whose server doesn't exist
	if out, err := run(commands); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const late = "SQLFENCE_TOKEN=books:000000000000001"
	for _, tt := range []struct {
		script string
		env    string
		want   string
	}{
		{"sqlfence run books -- " + python + " report.py", "", ""},
		{python + " report.py", late, "stale"},
		{"./report.sh", late, "stale"},
		{"psql -v ON_ERROR_STOP=1 $SQLFENCE_DSN -c 'UPDATE books SET price = 1'", "", "carries no fencing token"},
	} {
		out, err := run(tt.script, tt.env)
		if (err != nil) != (tt.want != "") || !strings.Contains(out, tt.want) {
			t.Errorf("%s %s: %v: %s", tt.env, tt.script, err, out)
		}
	}
	var price, mark int64
	if err := plain.QueryRow("SELECT price, fence_token FROM books").Scan(&price, &mark); err != nil || price != 30 || mark != 2 {
		t.Errorf("%d with the mark %d, %v", price, mark, err)
	}
}
