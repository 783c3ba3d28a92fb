// Package quickstart executes docs/start/quickstart.md.
package quickstart

import (
	"bufio"
	"crypto/rand"
	"database/sql"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/sqlfence/sqlfence/examples/internal/servers"
)

const page = "../../docs/start/quickstart.md"

// blocks returns the blocks of a language on the page.
func blocks(t *testing.T, language string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	check(t, err)
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		list = append(list, m[1])
	}
	return list
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// build compiles a program of the page in a separate folder. The program works for a shorter time and its lease lasts
// longer than on the page, so that the lease survives a pause of the machine for some seconds.
func build(t *testing.T, program string) (binary string) {
	t.Helper()
	program = strings.NewReplacer("time.Sleep(10 * ", "time.Sleep(2 * ", "lease.TTL(5*", "lease.TTL(15*").Replace(program)
	folder, err := os.MkdirTemp(".", "program") // inside of the module, whose requirements it shares
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	check(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o600))
	binary = filepath.Join(t.TempDir(), "shop")
	if out, err := exec.Command("go", "build", "-o", binary, "./"+folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// session executes step 3 of the page, and returns what its terminals show.
func session(t *testing.T, binary string) (first, second, continued string) {
	t.Helper()
	paused := exec.Command(binary, "10")
	paused.Dir = t.TempDir()
	out, err := paused.StdoutPipe()
	check(t, err)
	var refused strings.Builder
	paused.Stderr = &refused
	check(t, paused.Start())
	t.Cleanup(func() { _ = paused.Process.Kill() })
	lines := bufio.NewReader(out)
	first, err = lines.ReadString('\n')
	check(t, err)
	check(t, paused.Process.Signal(syscall.SIGSTOP))

	other := exec.Command(binary, "30")
	other.Dir = paused.Dir
	text, err := other.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	check(t, paused.Process.Signal(syscall.SIGCONT))
	rest, err := io.ReadAll(lines)
	check(t, err)
	if err := paused.Wait(); err == nil {
		t.Error("the paused process succeeded")
	}
	beside := regexp.MustCompile(`(?m)^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d (WARN lease: a lease was lost.*\n)?`)
	return first, string(text), string(rest) + beside.ReplaceAllString(refused.String(), "")
}

func TestQuickstartOnSQLite(t *testing.T) {
	t.Parallel()
	compare(t, build(t, blocks(t, "go")[0]))
}

func TestQuickstartOnPostgres(t *testing.T) {
	t.Parallel()
	dsn := inSchema(t, servers.PostgresURL(t))
	code := blocks(t, "go")
	program := strings.NewReplacer("\t_ \"modernc.org/sqlite\"\n", code[1]).Replace(code[0])
	program = regexp.MustCompile("const driver, dsn = .*\n").ReplaceAllLiteralString(program, code[2])
	program = regexp.MustCompile(`"postgres://[^"]*"`).ReplaceAllLiteralString(program, `"`+dsn+`"`)
	compare(t, build(t, program))
}

// inSchema creates a schema, which exists until the test ends, and returns the data source name with it.
func inSchema(t *testing.T, dsn string) string {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	check(t, err)
	name := "quickstart_" + strings.ToLower(rand.Text())
	_, err = db.Exec("CREATE SCHEMA " + name)
	check(t, err)
	t.Cleanup(func() {
		_, err := db.Exec("DROP SCHEMA " + name + " CASCADE")
		check(t, err)
		_ = db.Close()
	})
	u, err := url.Parse(dsn)
	check(t, err)
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	return u.String()
}

// compare executes the session and compares the terminals with those of the page.
func compare(t *testing.T, binary string) {
	t.Helper()
	first, second, continued := session(t, binary)
	for i, got := range []string{"$ ./shop 10\n" + first, "$ ./shop 30\n" + second, "$ fg\n" + continued} {
		if want := blocks(t, "text")[i]; got != want {
			t.Errorf("the terminal shows\n%s, the page has\n%s", got, want)
		}
	}
}
