package protocol_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Libraries of other languages send their ordinary statements to a table sealed with FromTransaction. Each library has
// a program in testdata/libraries. Comments in the program mark the lines that set the token.

var updatePage = flag.Bool("update-protocol", false, "write the part of docs/data/protocol.md about libraries")

// A script is a program that uses a library.
type script struct {
	name, file string
	run        []string // the command; the file, the address and the token follow
	version    []string // prints the library's version, and fails without the library
	address    func(t *testing.T, dsn string) string
	refusal    string   // code that reads the SQLSTATE, unless a comment in the program marks it
	short      bool     // also runs in a short run
	generate   []string // generates code from the folder of programs into another folder
}

const springJars = jdbcDriver + ":/usr/share/java/spring3-jdbc.jar:/usr/share/java/spring3-core.jar:" +
	"/usr/share/java/spring3-beans.jar:/usr/share/java/spring3-transaction.jar:/usr/share/java/commons-logging.jar"

// prismaGenerate generates Prisma's client. /bin/true replaces the schema engine, which Prisma would download and which
// only schema changes need.
const prismaGenerate = `cp "$1/prisma.schema" "$2/schema.prisma" && cd "$2" &&
	ln -s "$(node -p 'require.resolve("prisma/package.json").replace(/.prisma.package.json$/, "")')" node_modules &&
	PRISMA_SCHEMA_ENGINE_BINARY=/bin/true node node_modules/prisma/build/index.js generate --schema schema.prisma`

func node(pkg string) []string {
	return []string{"node", "-e", "const p = require('path'), f = require('fs'); " +
		"let d = p.dirname(require.resolve('" + pkg + "')); " +
		"while (!f.existsSync(d + '/package.json') || !JSON.parse(f.readFileSync(d + '/package.json')).version) d = p.dirname(d); " +
		"console.log(JSON.parse(f.readFileSync(d + '/package.json')).version)"}
}

func debian(pkg string) []string { return []string{"dpkg-query", "-W", "-f", "${Version}", pkg} }

func py(module string) []string {
	return []string{python, "-c", "import " + module + "; print(" + module + ".__version__)"}
}

var scripts = []script{
	{name: "psql", file: "psql.sql", run: []string{"psql", "-XAtq"}, version: []string{"psql", "--version"}, address: bareURL, short: true,
		refusal: `\set VERBOSITY sqlstate`},
	{name: "psycopg", file: "psycopg.py", run: []string{python, "-P"}, version: py("psycopg"), address: bareURL, short: true},
	{name: "SQLAlchemy", file: "sqlalchemy.py", run: []string{python, "-P"}, version: py("sqlalchemy"), address: bareURL},
	{name: "Django", file: "django.py", run: []string{python, "-P"}, version: py("django"), address: bareURL},
	{name: "Rails, ActiveRecord", file: "activerecord.rb", run: []string{"ruby"}, version: []string{"ruby", "-r", "active_record", "-e", "puts ActiveRecord::VERSION::STRING"}, address: bareURL},
	{name: "Sequel", file: "sequel.rb", run: []string{"ruby"}, version: []string{"ruby", "-r", "sequel", "-e", "puts Sequel::VERSION"}, address: bareURL},
	{name: "JDBC", file: "jdbc.java", run: []string{"java", "-cp", jdbcDriver}, version: debian("libpostgresql-jdbc-java"), address: jdbcURL},
	{name: "Spring, JdbcTemplate", file: "spring.java", run: []string{"java", "-cp", springJars}, version: debian("libspring-jdbc-java"), address: jdbcURL},
	{name: "Doctrine", file: "doctrine.php", run: []string{"php"}, version: debian("php-doctrine-orm"), address: bareURL},
	{name: "node-postgres", file: "pg.js", run: []string{"node"}, version: node("pg"), address: bareURL},
	{name: "Kysely", file: "kysely.js", run: []string{"node"}, version: node("kysely"), address: bareURL},
	{name: "Knex", file: "knex.js", run: []string{"node"}, version: node("knex"), address: bareURL},
	{name: "Drizzle", file: "drizzle.js", run: []string{"node"}, version: node("drizzle-orm"), address: bareURL},
	{name: "TypeORM", file: "typeorm.js", run: []string{"node"}, version: node("typeorm"), address: bareURL},
	{name: "Prisma", file: "prisma.js", run: []string{"node"}, version: node("@prisma/client"), address: bareURL,
		generate: []string{"sh", "-c", prismaGenerate, "sh"}},
}

// bareURL returns the address without the schema. libpq and node-postgres read the schema from PGOPTIONS.
func bareURL(t *testing.T, dsn string) string {
	u := parsed(t, dsn)
	query := u.Query()
	query.Del("search_path")
	u.RawQuery = query.Encode()
	return u.String()
}

func TestLibraries(t *testing.T) {
	page := make(map[string]row)
	for _, s := range scripts {
		t.Run(s.name, func(t *testing.T) {
			version := s.need(t)
			page[s.name] = s.row(t, version)
			const before, behind = "1:10@41 2:20@42", "1:30@42 3:33@42"
			write := s.prepare(t)
			fromTransaction, byStatement, without := sealedFromTransaction(t), sealed(t, harness.Bases[1]), open(t, harness.Bases[1])
			for l, mark := range map[*library]int{fromTransaction: -42, byStatement: -42, without: 42} {
				harness.MustExec(t, l.plain, fmt.Sprintf("INSERT INTO books (id, title, price, fence_token) VALUES (2, 'two', 20, %d)", mark))
			}
			for _, test := range []struct {
				name  string
				on    *library
				token string
				want  string
				rows  string
			}{
				{"no token", fromTransaction, "", "FT001", before},
				{"stale", fromTransaction, "books:000000000000041", "FT002", before},
				{"not issued", fromTransaction, "books:000000000000043", "FT003", before},
				{"another's", fromTransaction, "pens:000000000000042", "FT001", before},
				{"fresh", fromTransaction, "books:000000000000042", "ok", behind},
				// These controls show that the outcomes above come from FromTransaction and from the seal.
				{"fresh, without FromTransaction", byStatement, "books:000000000000042", "FT001", before},
				{"stale, without the seal", without, "books:000000000000041", "ok", "1:30@41 3:33@0"},
			} {
				if got := write(test.on, test.token); got != test.want {
					t.Errorf("%s: it printed %q, want %q", test.name, got, test.want)
				}
				test.on.want(t, test.rows)
			}
		})
	}
	if t.Failed() {
		return
	}
	if len(page) == 0 {
		t.Skip("no library has run: the page isn't compared")
	}
	writePage(t, page)
}

// need returns the library's version. Without the library the test is skipped or fails: see [need.Missing].
func (s script) need(t *testing.T) (version string) {
	t.Helper()
	if testing.Short() && !s.short {
		t.Skip("in the long run only")
	}
	c := exec.Command(s.version[0], s.version[1:]...)
	c.Dir = t.TempDir() // Python would import a file of the library's name from here
	out, err := c.Output()
	if err != nil {
		need.Missing(t, s.name, fmt.Sprintf("%s isn't there: %v; see scripts/with-clients", s.name, err))
	}
	words := strings.Fields(string(out))
	version, _, _ = strings.Cut(words[min(len(words)-1, 2)], "-")
	version, _, _ = strings.Cut(version, "+")
	return version
}

// prepare returns a function that runs the program with a token, and returns the last word that the program prints.
func (s script) prepare(t *testing.T) func(l *library, token string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("testdata", "libraries", s.file))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	command := func(l *library, token string) []string {
		return append(slices.Clone(s.run), file, s.address(t, l.dsn), token)
	}
	if generate := s.generate; generate != nil {
		c := exec.CommandContext(t.Context(), generate[0], append(generate[1:], filepath.Dir(file), dir)...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	switch filepath.Ext(file) {
	case ".sql":
		command = func(l *library, token string) []string {
			return append(slices.Clone(s.run), "-v", "token="+token, "-f", file, s.address(t, l.dsn))
		}
	case ".java": // compiled once for all runs
		if out, err := exec.CommandContext(t.Context(), "javac", "-cp", s.run[2], "-d", dir, file).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		command = func(l *library, token string) []string {
			return []string{"java", "-cp", s.run[2] + ":" + dir, "Books", s.address(t, l.dsn), token}
		}
	}
	return func(l *library, token string) string {
		words := command(l, token)
		c := exec.CommandContext(t.Context(), words[0], words[1:]...)
		c.Env = append(os.Environ(), "PGOPTIONS=-csearch_path="+parsed(t, l.dsn).Query().Get("search_path"))
		c.Dir = dir
		out, _ := c.CombinedOutput()
		printed := strings.Fields(string(out))
		if len(printed) == 0 {
			return ""
		}
		if last := printed[len(printed)-1]; len(last) == 5 || last == "ok" {
			return last
		}
		return string(out)
	}
}

// A row is a library's entry on the page.
type row struct {
	version, code, refusal string
	lines                  int
}

// row extracts the library's entry from the program's marked lines.
func (s script) row(t *testing.T, version string) row {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("testdata", "libraries", s.file))
	if err != nil {
		t.Fatal(err)
	}
	r := row{version: version, refusal: s.refusal}
	_, rest, ok := strings.Cut(string(file), "sqlfence {\n")
	r.code, _, _ = strings.Cut(rest, "sqlfence }")
	r.code = r.code[:max(0, strings.LastIndex(r.code, "\n"))]
	r.lines = strings.Count(r.code, "\n") + 1
	if !ok || r.lines > 3 {
		t.Errorf("%s is fenced by %d lines, want 1 to 3", s.file, r.lines)
	}
	for line := range strings.Lines(string(file)) {
		line = strings.TrimSpace(line)
		for _, comment := range []string{"# refusal", "// refusal"} {
			if code, found := strings.CutSuffix(line, comment); found {
				for _, around := range []string{"print(", "puts ", "echo ", "console.log(", "System.out.println("} {
					code, _ = strings.CutPrefix(strings.TrimSpace(code), around)
				}
				code = strings.TrimSuffix(strings.TrimSuffix(code, ";"), `, "\n"`)
				if strings.Count(code, "(") < strings.Count(code, ")") {
					code = strings.TrimSuffix(code, ")")
				}
				r.refusal = code
			}
		}
	}
	if r.refusal == "" {
		t.Errorf("%s doesn't say how the refusal is read", s.file)
	}
	return r
}

const libraryBegin, libraryEnd = "<!-- libraries: written by test/integration/extended/protocol -->\n", "<!-- end of libraries -->\n"

// writePage compares the page with the libraries that have run. With -update-protocol it writes the page if all have
// run.
func writePage(t *testing.T, ran map[string]row) {
	t.Helper()
	const file = "../../../../docs/data/protocol.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), libraryBegin)
	have, after, ok := strings.Cut(rest, libraryEnd)
	if !ok {
		t.Fatal("the page has no place for the libraries")
	}
	if *updatePage {
		if len(ran) < len(scripts) {
			t.Fatalf("only %q are there", slices.Sorted(maps.Keys(ran)))
		}
		if err := os.WriteFile(file, []byte(before+libraryBegin+libraries(ran)+libraryEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, s := range scripts {
		if r, ok := ran[s.name]; ok && (!strings.Contains(have, r.block(s)) || !strings.Contains(have, r.refusal)) {
			t.Errorf("the page has something else of %s than\n%s%s; run TestLibraries with -update-protocol", s.name, r.block(s), r.refusal)
		}
	}
}

// libraries returns the page's section about libraries.
func libraries(ran map[string]row) string {
	var b strings.Builder
	b.WriteString("\n| library | tested | lines | a refusal's SQLSTATE |\n|---|---|---|---|\n")
	for _, s := range scripts {
		r := ran[s.name]
		fmt.Fprintf(&b, "| %s | %s | %d | `%s` |\n", s.name, r.version, r.lines, r.refusal)
	}
	b.WriteString("\n")
	for _, s := range scripts {
		b.WriteString(ran[s.name].block(s))
	}
	return b.String()
}

// block returns the lines that set the token, under the library's name.
func (r row) block(s script) string {
	indent := len(r.code) - len(strings.TrimLeft(r.code, " "))
	var b strings.Builder
	for line := range strings.Lines(r.code + "\n") {
		b.WriteString(line[min(indent, len(line)-1):])
	}
	language := map[string]string{".py": "python", ".rb": "ruby", ".java": "java", ".php": "php", ".js": "js", ".sql": "sql"}[filepath.Ext(s.file)]
	return s.name + ":\n\n```" + language + "\n" + b.String() + "```\n\n"
}
