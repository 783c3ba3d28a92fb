package catalogue

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/rewrite"
)

// For a role without privileges a denied query gives a note. Any other error ends the check.
func TestDeniedQueryIsANote(t *testing.T) {
	denied := func(context.Context, string) ([][]string, error) { return nil, stateError("42501") }
	for _, db := range []Database{Postgres, MySQL} {
		l, err := run(t.Context(), db, denied, []Table{{Registered: "books", Table: rewrite.Table{Name: "books", FenceColumn: "fence_token"}}}, Options{Rows: true})
		if err != nil {
			t.Fatal(err)
		}
		if unseen := slices.ContainsFunc(l.found, func(f Finding) bool { return f.Code == "unseen" && f.Level == Note }); !unseen {
			t.Errorf("found %v, want a Note", l.found)
		}
	}
	broken := errors.New("broken")
	fails := func(context.Context, string) ([][]string, error) { return nil, broken }
	if _, err := run(t.Context(), SQLite, fails, []Table{{Table: rewrite.Table{Name: "books"}}}, Options{}); !errors.Is(err, broken) {
		t.Errorf("%v, want the query's error", err)
	}
}

type stateError string

func (e stateError) Error() string    { return string(e) }
func (e stateError) SQLState() string { return string(e) }

// Tables with a ledger are refused where several servers write.
func TestSeveralServers(t *testing.T) {
	ask := func(_ context.Context, query string) ([][]string, error) {
		switch {
		case strings.Contains(query, "information_schema.tables"):
			return [][]string{{"shop", "books", "BASE TABLE", "InnoDB", "1"}, {"shop", "fencing_tokens", "BASE TABLE", "InnoDB", "1"}}, nil
		}
		return nil, nil
	}
	for _, ledger := range []bool{true, false} {
		l, err := run(t.Context(), MySQL, ask, []Table{{Registered: "books", Ledger: ledger, Table: rewrite.Table{Name: "books"}}}, Options{Capabilities: session.Capabilities{Apart: "one server writes"}})
		if err != nil {
			t.Fatal(err)
		}
		if told := slices.ContainsFunc(l.found, func(f Finding) bool { return f.Code == "wrong-server" && f.Level == Fault && f.Table == "books" }); told != ledger {
			t.Errorf("ledger %v: found %v", ledger, l.found)
		}
	}
}

func TestFromClause(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT a FROM books WHERE b IN (SELECT c FROM pens)":                  "[{ books}]",
		"SELECT (SELECT x FROM pens) AS y, 'a FROM b' FROM books b ORDER BY 1": "[{ books} { b}]",
		`SELECT "from" FROM shop."where" GROUP BY 1`:                           "[{shop where}]",
		"select extract(year FROM d), a IS DISTINCT FROM b from (books)":       "[{ books}]",
		"SELECT 1":                         "[]",
		"SELECT from_a FROM books_2 LIMIT": "[{ books_2}]",
		"SELECT 'a":                        "[{ select} { a}]", // can't be read
	} {
		if got := fmt.Sprint(Postgres.text(query).from()); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

func TestBodies(t *testing.T) {
	books := &relation{schema: "shop", name: "books"}
	for text, writes := range map[string]bool{
		"UPDATE books SET a = 1":                             true,
		"update only shop . books set a = 1":                 true,
		"UPDATE archive.books SET a = 1":                     false,
		"DELETE FROM ONLY books":                             true,
		"INSERT INTO\n\tbooks VALUES (1)":                    true,
		"insert or replace into books select":                true,
		"REPLACE books VALUES (1)":                           true,
		"MERGE INTO books USING x ON true":                   true,
		"TRUNCATE TABLE books":                               true,
		"TRUNCATE pens, ONLY books CASCADE":                  true,
		"TRUNCATE pens; SELECT 1, 2 FROM books":              false,
		"COPY books FROM '/tmp/x'":                           true,
		"SELECT * FROM books FOR UPDATE":                     false,
		"SELECT * FROM pens FOR UPDATE; SELECT 1 AS books":   false,
		"UPDATE mybooks SET books = 1":                       false,
		"UPDATE pens SET a = 1 -- books":                     false,
		"/* UPDATE books */ SELECT 1":                        false,
		"INSERT INTO pens SELECT * FROM books":               false,
		"EXECUTE 'UPDATE books SET a = 1'":                   true,
		"EXECUTE 'UPDATE books SET a = ''1'''":               true,
		"LOAD DATA INFILE 'x' INTO TABLE books":              true,
		"DELETE FROM pens WHERE id IN (SELECT 1 FROM books)": false,
		"WHILE x DO UPDATE books SET a = 1":                  true,
	} {
		for _, db := range databases[1:] {
			if got := newBody(&db, code{body: text}).writes(books); got != writes {
				t.Errorf("%s, %s: writes %v", db.known.Name, text, got)
			}
		}
	}
	for text, writes := range map[string]bool{
		"UPDATE pens, books SET books.a = pens.a":                                       true,
		"UPDATE pens JOIN books ON pens.id = books.id SET books.a = 1":                  true,
		"DELETE b FROM shop.books AS b JOIN pens ON true":                               true,
		"INSERT INTO pens VALUES (1) ON DUPLICATE KEY UPDATE a = (SELECT 1 FROM books)": false,
	} {
		if got := newBody(&MySQL, code{body: text}).writes(books); got != writes {
			t.Errorf("%s: writes %v", text, got)
		}
	}
	if b := newBody(&Postgres, code{body: `UPDATE "Books" SET a = 1`}); b.writes(books) {
		t.Error(`"Books" isn't books in PostgreSQL`)
	}
	for text, why := range map[string]string{
		"print('UPDATE books": "can't be read", "EXECUTE format('DELETE FROM %I', 'books')": "runs SQL that it makes itself", "SELECT 'it''s' FROM books": "",
	} {
		if b := newBody(&Postgres, code{body: text}); b.hides != why || !b.names(books) {
			t.Errorf("%s: %q, names %v", text, b.hides, b.names(books))
		}
	}
	for text, sets := range map[string]bool{
		"NEW.fence_token := 0;": true, "SET NEW.fence_token = 1": true, "if x then new . FENCE_TOKEN = 1; end if": true,
		"IF NEW.fence_token < 0 THEN": false, "IF NEW.fence_token = 0 THEN": false, "SET NEW.a = 1, NEW.fence_token = 2": true, "NEW.other := NEW.fence_token": false,
		"can't be read: fence_token": true,
	} {
		if got := newBody(&Postgres, code{body: text}).assigns["fence_token"]; got != sets {
			t.Errorf("%s: sets %v", text, got)
		}
	}
}

func TestPatternsOfGrants(t *testing.T) {
	for pattern, want := range map[string]bool{"shop": true, "sh%": true, "s_op": true, `s\_op`: false, "%": true, "shops": false, "": false, "sho": false} {
		if got := schemasOf(pattern).MatchString("shop"); got != want {
			t.Errorf("%s: %v", pattern, got)
		}
	}
}

// Columns of SQLite have no type but an affinity.
func TestAffinityOfSQLiteColumnsIsTheirType(t *testing.T) {
	for declared, want := range map[string]string{
		"bigint": "integer", "INTEGER": "integer", "varchar(20)": "text", "": "blob", "REAL": "real", "double precision": "real", "numeric(10,2)": "numeric", "uuid": "numeric", "CHARINT": "integer",
	} {
		if got := affinity(declared); got != want {
			t.Errorf("%s: %s, want %s", declared, got, want)
		}
	}
}

// Every finding has a problem and a remedy.
func TestLinkTexts(t *testing.T) {
	l := &look{db: &Postgres}
	for kind := range linkTexts {
		l.addLink(target{&Table{Registered: "books"}, &relation{schema: "shop", name: "books", visible: true}}, link{kind: kind, schema: "shop", name: "other", detail: "detail"}, []string{"a", "b", "c", "d", "e", "f", "g"}, false)
	}
	for _, f := range l.found {
		if text := fmt.Sprint(f); strings.Contains(text, "%!") || f.Problem == "" || f.Remedy == "" {
			t.Error(text)
		}
	}
}

var update = flag.Bool("update", false, "write docs/data/verify.md")

// The list of findings is the one of the code.
func TestListOfFindingsIsThatOfTheCode(t *testing.T) {
	const name = "../../docs/data/verify.md"
	var b strings.Builder
	b.WriteString("# Findings of verify\n\nThis page is written by `go test ./internal/catalogue -run TestListOfFindings -update`. " +
		"[Verify](../verify.md) has\nhow to get the findings.\n\nA *fault* means that a table isn't guarded or that every guarded write fails. A *warning* means that " +
		"a stale write or a\nwrite without a token may land, or that writes fail without need. A *note* requires no action. A finding may have a more\nspecific remedy than its code.\n")
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", k.code, wrapped("*"+k.levels+".* "+k.means))
		if k.details != "" {
			fmt.Fprintf(&b, "\n%s\n", wrapped(k.details))
		}
		fmt.Fprintf(&b, "\n%s\n", wrapped("Remedy: "+Remedies[k.code]))
	}
	if len(kinds) != len(Remedies) {
		t.Errorf("%d kinds, and %d remedies", len(kinds), len(Remedies))
	}
	is, err := os.ReadFile(name)
	if err != nil && !*update {
		t.Fatal(err)
	}
	switch want := b.String(); {
	case string(is) == want:
	case *update:
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is out of date; -update writes it", name)
	}
}

// wrapped returns a paragraph in lines of at most 120 columns.
func wrapped(text string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > 120 {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return strings.Join(append(lines, line), "\n")
}

// Each Finding in the code has a code that kinds lists, with the same level.
func TestFindingsHaveKinds(t *testing.T) {
	names := map[string]string{"Fault": "fault", "Warning": "warning", "": "note"}
	levels, found := make(map[string]string), 0
	for _, k := range kinds {
		levels[k.code] = k.levels
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	finding := regexp.MustCompile(`Finding\{(?:Level: +(\w+),\s+)?Code: +"([a-z-]+)"`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range finding.FindAllStringSubmatch(string(text), -1) {
			found++
			level, constant := names[m[1]]
			if listed, ok := levels[m[2]]; !ok || constant && !strings.Contains(listed, level) {
				t.Errorf("%s makes a %s of the kind %s, which has %q", file, level, m[2], listed)
			}
		}
	}
	if found < 12 {
		t.Errorf("%d findings were looked at", found)
	}
}

// Each kind of database says yes or no to each fact.
func TestDatabasesAreComplete(t *testing.T) {
	if got, want := len(databases)-1, len(dialect.All()); got != want {
		t.Errorf("%d databases, want %d", got, want)
	}
	for _, db := range databases[1:] {
		if db.silentCascades == 0 || db.refusesViews == 0 || db.judge == nil || db.same == nil || db.length == nil || db.user == "" {
			t.Errorf("%s lacks something: %+v", db.known.Name, db)
		}
	}
}
