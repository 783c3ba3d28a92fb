package protocol_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// The pages' programs take a token, write, and distinguish the refusals.

// A program is the pages' code in a frame that calls its functions.
type program struct {
	name  string // the name of the block on the page
	frame string // a file in testdata
	base  harness.Base
	// probe is a command that fails if the program can't run on this machine.
	probe, run []string
	address    func(t *testing.T, dsn string) string
}

const jdbcDriver = "/usr/share/java/postgresql.jar"

// Debian installs psycopg for this interpreter. PATH may contain another Python first.
const python = "/usr/bin/python3"

var programs = []program{
	{name: "python", frame: "program.py", base: harness.Bases[1], probe: []string{python, "-c", "import psycopg"}, run: []string{python},
		address: postgresURL},
	{name: "pg", frame: "pg.js", base: harness.Bases[1], probe: []string{"node", "-e", "require('pg')"}, run: []string{"node"},
		address: postgresURL},
	{name: "mysql2", frame: "mysql2.js", base: harness.MySQL, probe: []string{"node", "-e", "require('mysql2')"}, run: []string{"node"},
		address: mysqlURL},
	{name: "java", frame: "Jdbc.java", base: harness.Bases[1], probe: []string{"java", "-cp", jdbcDriver, "--list-modules"}, run: []string{"java", "-cp", jdbcDriver},
		address: jdbcURL},
}

const wantOutput = `token 43
set
without a token: no token
with an older one: stale
with a higher one: not issued
removed without a token: no token
removed with an older one: stale
removed
something else: None
`

func TestPrograms(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			p.need(t)
			l := sealed(t, p.base)
			if named(p.base) == "postgres" {
				if err := harness.NewStore(t, l.plain, tokens.WithProcedures()).Setup(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			harness.MustExec(t, l.plain, "INSERT INTO books (id, title, price, fence_token) VALUES (2, 'two', 20, -42)")
			out, err := p.command(t, l.dsn).CombinedOutput()
			if err != nil || string(out) != wantOutput {
				t.Errorf("%v, it printed\n%s\nwant\n%s", err, out, wantOutput)
			}
			l.want(t, "1:30@43")
		})
	}
}

// need skips or fails the test if the program can't be run: see [need.Missing].
func (p program) need(t *testing.T) {
	t.Helper()
	_, missing := exec.LookPath(p.probe[0])
	if missing == nil && slices.Contains(p.probe, jdbcDriver) {
		_, missing = os.Stat(jdbcDriver)
	}
	if missing == nil {
		missing = exec.Command(p.probe[0], p.probe[1:]...).Run()
	}
	if missing != nil {
		need.Missing(t, p.name, fmt.Sprintf("%q: %v; see scripts/with-clients", p.probe, missing))
	}
}

// command returns the command that runs the program on a database.
func (p program) command(t *testing.T, dsn string) *exec.Cmd {
	t.Helper()
	frame, err := os.ReadFile(filepath.Join("testdata", p.frame))
	if err != nil {
		t.Fatal(err)
	}
	comment := map[string]string{".py": "# ", ".js": "// ", ".java": "// "}[filepath.Ext(p.frame)]
	if strings.Count(string(frame), comment+"{page}") != 1 {
		t.Fatalf("%s has no place for the page's block", p.frame)
	}
	file := filepath.Join(t.TempDir(), p.frame)
	if err := os.WriteFile(file, []byte(strings.Replace(string(frame), comment+"{page}", block(t, p.name), 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), p.run[0], append(p.run[1:], file, p.address(t, dsn))...)
	if named(p.base) == "mysql" {
		c.Env = append(os.Environ(), "ISSUE="+block(t, "mysql issue"), "ENSURE="+block(t, "mysql ensure"))
	}
	return c
}

// postgresURL returns the DSN with search_path in libpq's syntax.
func postgresURL(t *testing.T, dsn string) string {
	t.Helper()
	u := parsed(t, dsn)
	query := u.Query()
	query.Set("options", "-csearch_path="+query.Get("search_path"))
	query.Del("search_path")
	u.RawQuery = query.Encode()
	return u.String()
}

func jdbcURL(t *testing.T, dsn string) string {
	t.Helper()
	u := parsed(t, dsn)
	query := url.Values{"currentSchema": {u.Query().Get("search_path")}, "user": {u.User.Username()}}
	if password, ok := u.User.Password(); ok {
		query.Set("password", password)
	}
	return "jdbc:postgresql://" + u.Host + u.Path + "?" + query.Encode()
}

func parsed(t *testing.T, dsn string) *url.URL {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil || u.Host == "" {
		need.Missing(t, "postgres", fmt.Sprint("the server's data source name is no URL with a host: ", err))
	}
	return u
}

func mysqlURL(t *testing.T, dsn string) string {
	t.Helper()
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u := url.URL{Scheme: "mysql", Host: c.Addr, Path: "/" + c.DBName, User: url.UserPassword(c.User, c.Passwd)}
	return u.String()
}
