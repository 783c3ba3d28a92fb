package migrations_test

import (
	"database/sql"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// The SQL files in the folder schema, which create sqlfence's own tables.

var updateFiles = flag.Bool("update-files", false, "write what Setup sends into the files of schema")

// schemaOf is the folder of schema.Files for a base's database.
func schemaOf(b harness.Base) string { return named(b, "postgres", "sqlite", "mysql") }

// schemaDir returns the path of the folder that schemaOf names.
func schemaDir(b harness.Base) string {
	return filepath.Join("..", "..", "..", "..", "..", "schema", schemaOf(b))
}

// issuersDir returns the folder with the files that make the ledger record who takes tokens.
func issuersDir(b harness.Base) string {
	return filepath.Join("..", "..", "..", "..", "..", "schema", "issuers", schemaOf(b))
}

// schemaFiles returns the files of a folder by their names, in order.
func schemaFiles(t *testing.T, dir string) (names, texts []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.sql"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(names), err)
	}
	for i, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		names[i] = filepath.Base(name)
		texts = append(texts, string(text))
	}
	return names, texts
}

// named returns the name that matches the base's database.
func named(b harness.Base, postgres, sqlite, mysql string) string {
	return map[sqlfence.Dialect]string{sqlfence.Postgres: postgres, sqlfence.SQLite: sqlite, sqlfence.MySQL: mysql}[b.Dialect]
}

// setUp has all packages create their tables.
func setUp(t *testing.T, b harness.Base, db *sql.DB) {
	t.Helper()
	var options []lease.Option
	if b.Dialect == sqlfence.Postgres {
		options = append(options, lease.WithProcedures())
	}
	store, err := tokens.New(db)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := lease.New(db, options...)
	if err != nil {
		t.Fatal(err)
	}
	manager, err := rowlock.NewManager(db)
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]error{"tokens": store.Setup(t.Context()), "lease": leases.Setup(t.Context()), "rowlock": manager.Setup(t.Context())} {
		if set != nil {
			t.Fatalf("%s: %v", name, set)
		}
	}
}

// definitions returns the statements that define something, in the order they were sent.
func definitions(texts []string) (found []string) {
	for _, text := range texts {
		if strings.HasPrefix(text, "CREATE ") || strings.HasPrefix(text, "ALTER ") || strings.HasPrefix(text, "DO ") {
			found = append(found, text)
		}
	}
	return found
}

// The files must hold the statements that Setup sends, byte for byte, after a line for goose.
func TestSchemaFiles(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		db, sent := b.Counted(t, b.DSN(t))
		setUp(t, b, db)
		wantInFiles(t, schemaDir(b), sent.Texts())
		store, err := tokens.New(db)
		if err != nil {
			t.Fatal(err)
		}
		sent.Reset()
		if err := store.RecordIssuers(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantInFiles(t, issuersDir(b), sent.Texts())
	})
}

// wantInFiles fails the test unless the files of a folder hold the definitions in sent.
func wantInFiles(t *testing.T, dir string, sent []string) {
	t.Helper()
	var files []string
	_, texts := schemaFiles(t, dir)
	for _, text := range texts {
		body, ok := strings.CutPrefix(text, "-- +goose Up\n")
		if strings.HasPrefix(body, "-- +goose StatementBegin\n") { // the statement contains semicolons
			for _, one := range strings.Split(strings.TrimSuffix(body, "-- +goose StatementEnd\n"), "-- +goose StatementEnd\n") {
				body = strings.TrimPrefix(one, "-- +goose StatementBegin\n")
				files = append(files, strings.TrimSuffix(body, ";\n"))
			}
		} else {
			files = append(files, strings.Split(strings.TrimSuffix(body, ";\n"), ";\n\n")...)
		}
		if !ok || !strings.HasSuffix(body, ";\n") {
			t.Errorf("want a line for goose, and a semicolon and a line feed at the end:\n%s", text)
		}
	}
	sends := definitions(sent)
	slices.Sort(files)
	slices.Sort(sends)
	sends = slices.Compact(sends) // package lease also sets up the ledger
	onlyFiles, onlySends := without(files, sends), without(sends, files)
	if *updateFiles {
		replaceInFiles(t, dir, onlyFiles, onlySends)
	} else if len(onlyFiles)+len(onlySends) > 0 {
		t.Errorf("only the files have\n%s\nonly Setup sends\n%s\nRun this test with -update-files, then TestAtlasSum with -update-sum.",
			strings.Join(onlyFiles, "\n\n"), strings.Join(onlySends, "\n\n"))
	}
}

// without returns the texts that others doesn't contain.
func without(texts, others []string) (left []string) {
	for _, text := range texts {
		if !slices.Contains(others, text) {
			left = append(left, text)
		}
	}
	return left
}

// replaceInFiles replaces the old definition that has the longest common prefix with each new definition.
func replaceInFiles(t *testing.T, dir string, olds, news []string) {
	t.Helper()
	names, texts := schemaFiles(t, dir)
	for _, text := range news {
		if len(olds) == 0 {
			t.Fatalf("%s has no file yet for\n%s", dir, text)
		}
		old := slices.MaxFunc(olds, func(a, b string) int { return alike(a, text) - alike(b, text) })
		for i := range texts {
			texts[i] = strings.Replace(texts[i], old, text, 1)
		}
	}
	for i, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(texts[i]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// alike returns the length of the common prefix of two texts.
func alike(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// After the files have run, Setup changes nothing. The files may run again.
func TestSetupAfterFiles(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		source := b.DSN(t)
		plain := b.Raw(t, source)
		db := b.Fenced(t, source)
		_, texts := schemaFiles(t, schemaDir(b))
		var catalogue string
		for round := range 2 {
			for _, text := range texts {
				// Migration tools send the files under Bypass, because only sqlfence's own packages may define its
				// tables without Bypass.
				if _, err := db.ExecContext(sqlfence.Bypass(t.Context(), "schema"), text); err != nil {
					t.Fatalf("%v:\n%s", err, text)
				}
			}
			before := defined(t, b, plain)
			setUp(t, b, db)
			if after := defined(t, b, plain); after != before || round > 0 && after != catalogue {
				t.Errorf("round %d: there were\n%s\nnow there are\n%s", round, before, after)
			} else {
				catalogue = after
			}
		}
	})
}

// After the files for the issuers' record have run, RecordIssuers changes nothing.
func TestRecordIssuersAfterFiles(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		source := b.DSN(t)
		plain, db := b.Raw(t, source), b.Fenced(t, source)
		setUp(t, b, db)
		_, texts := schemaFiles(t, issuersDir(b))
		for _, text := range texts {
			if _, err := db.ExecContext(sqlfence.Bypass(t.Context(), "schema"), text); err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
		}
		before := defined(t, b, plain)
		store, err := tokens.New(db)
		if err == nil {
			err = store.RecordIssuers(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if after := defined(t, b, plain); after != before {
			t.Errorf("there were\n%s\nnow there are\n%s", before, after)
		}
		harness.IssueToken(t, store, "books")
		for issued, err := range store.ListIssued(t.Context(), "") {
			if err != nil || issued.At.IsZero() {
				t.Errorf("%+v, %v", issued, err)
			}
		}
	})
}

// defined returns the tables and indexes in the database's catalogue.
func defined(t *testing.T, b harness.Base, db *sql.DB) string {
	t.Helper()
	return harness.Describe(db.QueryContext(t.Context(), named(b,
		`SELECT relname, attname, format_type(atttypid, atttypmod), attnotnull FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
			WHERE relnamespace = current_schema()::regnamespace AND attnum > 0
		UNION SELECT proname, prosrc, tgname, tgenabled = 'A' FROM pg_proc LEFT JOIN pg_trigger ON tgfoid = pg_proc.oid
			WHERE pronamespace = current_schema()::regnamespace ORDER BY 1, 2, 3`,
		"SELECT name, sql FROM sqlite_schema ORDER BY name",
		`SELECT table_name, column_name, column_type, is_nullable FROM information_schema.columns WHERE table_schema = DATABASE()
		UNION SELECT table_name, index_name, column_name, non_unique FROM information_schema.statistics WHERE table_schema = DATABASE()
		ORDER BY 1, 2, 3`)))
}
