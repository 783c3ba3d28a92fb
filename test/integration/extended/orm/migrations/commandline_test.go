package migrations_test

import (
	"database/sql"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/golang-migrate/migrate/v4"
	"github.com/pressly/goose/v3"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// sqlfence init writes migration files. Each tool runs the files after the program's migrations, and reverts the last
// file.
func TestCommandLineWritesMigrations(t *testing.T) {
	command := filepath.Join(t.TempDir(), "sqlfence")
	if out, err := exec.Command("go", "build", "-o", command, "github.com/sqlfence/sqlfence/cmd/sqlfence").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	write := func(t *testing.T, b harness.Base, format string) fs.FS {
		t.Helper()
		dir := t.TempDir()
		text := "-- +goose Up\nCREATE TABLE books (id bigint PRIMARY KEY, title varchar(100));\n"
		name := map[string]string{"goose": "00001_books.sql", "golang-migrate": "00001_books.up.sql"}[format]
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"wrote ", " is there"} {
			out, err := exec.Command(command, "init", "--dialect", named(b, "postgres", "sqlite", "mysql"),
				"--table", "books=row-fence:fence_token,ledger", "--dir", dir, "--format", format).CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				t.Fatalf("%v: %s", err, out)
			}
		}
		return os.DirFS(dir)
	}
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		t.Run("goose", func(t *testing.T) {
			source := b.DSN(t)
			p, err := goose.NewProvider(goose.Dialect(named(b, "postgres", "sqlite3", "mysql")), b.Raw(t, source), write(t, b, "goose"))
			if err == nil {
				_, err = p.Up(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			writesBooks(t, b, source)
			if _, err := p.Down(t.Context()); err != nil {
				t.Fatal(err)
			}
			lacksFence(t, b.Raw(t, source))
		})
		t.Run("golang-migrate", func(t *testing.T) {
			source := b.DSN(t)
			tool := source
			if b.Dialect == sqlfence.MySQL {
				tool += map[bool]string{false: "?", true: "&"}[strings.Contains(tool, "?")] + "multiStatements=true"
			}
			files := write(t, b, "golang-migrate")
			if err := runMigrate(&ownedDB{b.Raw(t, tool), b}, files, ".", "", (*migrate.Migrate).Up); err != nil {
				t.Fatal(err)
			}
			writesBooks(t, b, source)
			back := func(m *migrate.Migrate) error { return m.Steps(-1) }
			if err := runMigrate(&ownedDB{b.Raw(t, tool), b}, files, ".", "", back); err != nil {
				t.Fatal(err)
			}
			lacksFence(t, b.Raw(t, source))
		})
	})
}

// writesBooks writes with a token to the tables that the migrations have created.
func writesBooks(t *testing.T, b harness.Base, source string) {
	t.Helper()
	db := b.Fenced(t, source, harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
	store, err := tokens.New(db)
	if err != nil {
		t.Fatal(err)
	}
	token, err := store.Issue(t.Context(), "books")
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(sqlfence.WithFence(t.Context(), token), "INSERT INTO books (id, title) VALUES (1, 'one')")
	if err != nil {
		t.Fatal(err)
	}
}

func lacksFence(t *testing.T, db *sql.DB) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), "UPDATE books SET fence_token = 2"); err == nil {
		t.Error("the column is there after the way back")
	}
	harness.MustExec(t, db, "UPDATE books SET title = 'two'")
}
