package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/tokens"
)

// A remedy is a command that a page, an error or a finding advises, executed as its whole sequence: from the fault to
// healthy writers.
type remedy struct {
	rules  string // of the table books, as --table takes them
	fault  []string
	steps  []string // "verify" runs the command that verify's finding names
	rename string   // the table's new resource after the steps
	on     []string // databases; all where it is empty
}

// remedies has the remedies of each command that TestEveryRemedyIsListed finds. Before the fault a holder with token 3
// writes, and then a holder with token 7. The first holder tries to write again at each step.
var remedies = map[string][]remedy{
	"tokens repair": {
		{ // a dump was restored that knows the old holder's token as the newest
			rules: "row-fence:fence_token,ledger", fault: []string{"ledger: 3"}, steps: []string{"verify"},
		}, { // a mark that was never issued
			rules: "row-fence:fence_token,ledger", fault: []string{"sql:UPDATE books SET fence_token = 97"}, steps: []string{"verify"},
		},
	},
	"tokens rotate": {{
		rules: "row-fence:fence_token,ledger", fault: []string{"sql:UPDATE books SET fence_token = 800000000000000"},
		steps: []string{
			"sqlfence tokens rotate books --mark books=fence_token --dry-run --reason test",
			"sqlfence tokens rotate books --mark books=fence_token --reason test",
		},
		rename: "books-2",
	}},
	"init": {
		{ // the ledger is lost: its tokens would begin again at 1
			rules: "ledger", fault: []string{"sql:DROP TABLE fencing_tokens"},
			steps: []string{"sqlfence init --apply", "sqlfence tokens repair --floor 7 --reason test"},
		}, {
			rules: "row-fence:fence_token,ledger", fault: []string{"sql:DROP TABLE fencing_tokens"},
			steps: []string{"sqlfence init --apply", "verify"},
		},
	},
	"init --issuers": {{
		rules: "ledger", fault: []string{"sqlfence init --issuers --apply", "sql:ALTER TABLE fencing_tokens DROP COLUMN issued_at"},
		steps: []string{"sqlfence init --issuers --apply"}, on: []string{"mysql"}, // PostgreSQL doesn't drop the column
	}},
	"tokens issue": {{ // a holder that may be alive after all
		rules: "ledger", fault: []string{"lease: books worker-3"},
		steps: []string{"sqlfence tokens issue books --reason test", "sqlfence leases release books --reason test"},
	}},
	"leases release": {{
		rules: "row-fence:fence_token,ledger", fault: []string{"lease: books worker-3"},
		steps: []string{"sqlfence leases release books --reason test"},
	}},
	"add-fence": {{
		rules: "row-fence:fence_token,ledger", fault: []string{"sql:ALTER TABLE books DROP COLUMN fence_token"},
		steps: []string{"sqlfence add-fence --table books=row-fence:fence_token,ledger --apply"},
	}},
	"seal": {{
		rules: "row-fence:fence_token,ledger,sealed", fault: nil,
		steps: []string{"sqlfence seal --table books=row-fence:fence_token,ledger,sealed --apply"}, on: []string{"postgres", "mysql"},
	}},
	"unseal": {{
		rules: "row-fence:fence_token,ledger,sealed",
		fault: []string{"sqlfence seal --table books=row-fence:fence_token,ledger,sealed --apply"},
		steps: []string{
			"sqlfence unseal --table books=row-fence:fence_token,ledger,sealed --apply",
			"sqlfence seal --table books=row-fence:fence_token,ledger,sealed --apply",
		},
		on: []string{"postgres", "mysql"},
	}},
}

// queries change nothing.
var queries = []string{"tokens list", "leases list"}

// Every command in a text of the product, or on a page for operators, is executed by a remedy's test.
func TestEveryRemedyIsListed(t *testing.T) {
	command := regexp.MustCompile(`sqlfence (tokens [a-z]+|leases [a-z]+|init(?: --issuers)?|seal|unseal|add-fence)\b`)
	found := make(map[string]string)
	for _, pattern := range []string{
		"../../*.go", "../../internal/*/*.go", "../../internal/dialect/*/*.go", "../../tokens/*.go", "../../lease/*.go",
		"../../schema/*.go", "internal/cli/*.go", "../../docs/operations.md", "../../docs/verify.md", "../../docs/data/verify.md", "../../docs/tokens.md",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range command.FindAllStringSubmatch(string(text), -1) {
				found[m[1]] = file
			}
		}
	}
	// Programs adopt and delete tokens; these commands are no remedies of faults.
	for _, name := range append(queries, "tokens adopt", "tokens delete") {
		delete(found, name)
	}
	for name, file := range found {
		if len(remedies[name]) == 0 {
			t.Errorf("%s names sqlfence %s, which no remedy's test executes", file, name)
		}
	}
	for name := range remedies {
		if found[name] == "" {
			t.Errorf("no text names sqlfence %s", name)
		}
	}
}

// Each remedy leads from the fault to healthy writers, and after no step an old holder's write succeeds.
func TestRemediesLeadToHealthyWriters(t *testing.T) {
	fresh := map[string]func(testing.TB) string{"sqlite": freshSQLite, "postgres": freshPostgres, "mysql": freshMySQL}
	for _, name := range slices.Sorted(maps.Keys(remedies)) {
		for i, r := range remedies[name] {
			for server, open := range fresh {
				if len(r.on) > 0 && !slices.Contains(r.on, server) {
					continue
				}
				t.Run(fmt.Sprintf("%s %d/%s", name, i, server), func(t *testing.T) { r.run(t, open(t)) })
			}
		}
	}
}

func (r remedy) run(t *testing.T, dsn string) {
	plain := opened(t, dsn)
	execute(t, plain, "CREATE TABLE books (id integer PRIMARY KEY, price bigint, fence_token bigint NOT NULL DEFAULT 0)")
	execute(t, plain, "INSERT INTO books (id, price) VALUES (1, 10)")
	shell(t, dsn, "sqlfence init --apply")
	if !strings.Contains(r.rules, "row-fence") {
		execute(t, plain, "ALTER TABLE books DROP COLUMN fence_token")
	}
	db := r.open(t, dsn, "books")
	store, err := tokens.New(db)
	if err != nil {
		t.Fatal(err)
	}
	hold := func(name string, value int64) context.Context {
		return sqlfence.WithFence(t.Context(), sqlfence.Token{Name: name, Value: value})
	}
	if err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 3}); err != nil {
		t.Fatal(err)
	}
	update := func(ctx context.Context, db *sql.DB, price int) error {
		_, err := db.ExecContext(ctx, fmt.Sprintf("UPDATE books SET price = %d WHERE id = 1", price))
		return err
	}
	if err := update(hold("books", 3), db, 30); err != nil {
		t.Fatal(err)
	}
	if err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 7}); err != nil {
		t.Fatal(err)
	}
	if err := update(hold("books", 7), db, 70); err != nil {
		t.Fatal(err)
	}
	late := func(after string) {
		t.Helper()
		if err := update(hold("books", 3), db, 99); err == nil {
			t.Errorf("after %s an old holder's write lands", after)
		}
		var price int
		if err := plain.QueryRowContext(t.Context(), "SELECT price FROM books WHERE id = 1").Scan(&price); err != nil || price != 70 {
			t.Errorf("after %s the price is %d, %v", after, price, err)
		}
	}
	for _, step := range r.fault {
		if value, ok := strings.CutPrefix(step, "ledger: "); ok {
			lose(t, dsn, plain, value)
			continue
		}
		perform(t, dsn, step)
	}
	late("the fault")
	for _, step := range r.steps {
		if step == "verify" {
			step = r.advised(t, dsn)
		}
		t.Log(shell(t, dsn, step))
		late(step)
	}

	name := "books"
	if r.rename != "" {
		name = r.rename
		late("the end of the remedy")
	}
	healthy := r.open(t, dsn, name)
	fresh, err := store.Issue(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := update(sqlfence.WithFence(t.Context(), fresh), healthy, 70); err != nil {
		t.Errorf("a new holder with %v: %v", fresh, err)
	}
	late("a new holder's write")
	if err := update(hold("books", 3), healthy, 99); err == nil {
		t.Error("an old holder's write lands in a program of the new release")
	} else if r.rename == "" && !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("an old holder's write fails with %v, want ErrStale", err)
	}
}

// open opens the database with the remedy's rules, and a resource.
func (r remedy) open(t *testing.T, dsn, resource string) *sql.DB {
	t.Helper()
	source, err := database.Parse(dsn, true)
	if err != nil {
		t.Fatal(err)
	}
	rules := []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Resource(resource)}
	if strings.Contains(r.rules, "row-fence") {
		rules = append(rules, sqlfence.RowFence("fence_token"))
	}
	if strings.Contains(r.rules, "sealed") {
		rules = append(rules, sqlfence.Sealed())
	}
	db, err := source.Open(sqlfence.WithTable("books", rules...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// lose sets the ledger's newest token of the books, as a restore would.
func lose(t *testing.T, dsn string, db *sql.DB, value string) {
	t.Helper()
	execute(t, db, "DROP TABLE fencing_tokens")
	shell(t, dsn, "sqlfence init --apply")
	execute(t, db, "INSERT INTO fencing_tokens (name, token) VALUES ('books', "+value+")")
}

// advised returns the command in verify's only fault. The fault's SQL must not lower a token.
func (r remedy) advised(t *testing.T, dsn string) string {
	t.Helper()
	says := shell(t, dsn, "sqlfence verify --json --table books="+r.rules)
	if strings.Contains(says, "UPDATE ") {
		t.Errorf("verify prints SQL that changes tokens: %s", says)
	}
	command := regexp.MustCompile(`sqlfence tokens repair --floor \d+`).FindString(says)
	if command == "" {
		t.Fatalf("verify says %s", says)
	}
	return command + " --reason test"
}
