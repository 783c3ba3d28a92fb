package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/examples/internal/servers"
	"github.com/sqlfence/sqlfence/examples/internal/sqlite"
)

// docs/compared.md has what the program prints.
func TestCompared(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { wantOnPage(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) {
		wantOnPage(t, servers.PostgresURL(t))
	})
}

func wantOnPage(t *testing.T, dsn string) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), &out, dsn); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/compared.md")
	if err != nil {
		t.Fatal(err)
	}
	// The page has the driver of a build with cgo.
	got := strings.Replace(out.String(), "driver "+sqlite.Driver+".", "driver sqlite3.", 1)
	if dsn != "" {
		got = out.String()
	}
	if !strings.Contains(string(page), "```text\n"+got+"```\n") {
		t.Errorf("docs/compared.md doesn't have\n%s", &out)
	}
}
