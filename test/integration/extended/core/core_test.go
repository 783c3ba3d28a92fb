// Package core_test determines the trusted core: the files that a program enters, from Open to refused writes.
package core_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

var update = flag.Bool("update-core", false, "write docs/trusted-core.md anew")

const (
	root   = "../../../.."
	page   = root + "/docs/trusted-core.md"
	module = "github.com/sqlfence/sqlfence/"
)

// Upper limits of the trusted core. If a change makes the core smaller, lower these limits.
const (
	mostFiles, mostLines         = 170, 24740
	mostWarmFiles, mostWarmFuncs = 45, 140
)

// The files that a PostgreSQL program with RowFence and Ledger enters must be the files that docs/trusted-core.md
// lists, and must stay below the limits.
func TestTrustedCore(t *testing.T) {
	all, warm := entered(t)
	files := all.files()
	lines := 0
	var list strings.Builder
	for folder, names := range byFolder(files) {
		for _, name := range names {
			lines += linesOf(t, path.Join(folder, name))
		}
		fmt.Fprintf(&list, "- `%s`: %s\n", folder, strings.Join(names, ", "))
	}
	t.Logf("%d files, %d lines; a warm UPDATE enters %d files and %d functions", len(files), lines, len(warm.files()), len(warm))
	if len(files) > mostFiles || lines > mostLines {
		t.Errorf("the core has %d files with %d lines, more than %d with %d", len(files), lines, mostFiles, mostLines)
	}
	if len(warm.files()) > mostWarmFiles || len(warm) > mostWarmFuncs {
		t.Errorf("a warm UPDATE enters %d files and %d functions, more than %d and %d", len(warm.files()), len(warm),
			mostWarmFiles, mostWarmFuncs)
	}
	comparePage(t, list.String())
}

// A profile lists the functions that a program has entered, each as "file function".
type profile []string

func (p profile) files() []string {
	var files []string
	for _, entered := range p {
		file, _, _ := strings.Cut(entered, " ")
		files = append(files, file)
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// entered runs the program with coverage counters. all covers the whole run; warm covers a single UPDATE.
func entered(t *testing.T) (all, warm profile) {
	t.Helper()
	dsn := harness.PostgresDSN(t)
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE books (id int PRIMARY KEY, price int, fence_token bigint NOT NULL DEFAULT 0)"); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "program")
	command(t, nil, "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+module+"...", "-o", program, "./program")
	first, second := t.TempDir(), t.TempDir()
	command(t, []string{"DSN=" + dsn, "ALL=" + first, "WARM=" + second, "GOCOVERDIR=" + t.TempDir()}, program)
	return read(t, first), read(t, second)
}

// read returns the functions that the coverage counters in a folder report as entered.
func read(t *testing.T, folder string) (entered profile) {
	t.Helper()
	for line := range strings.Lines(command(t, nil, "go", "tool", "covdata", "func", "-i="+folder)) {
		fields := strings.Fields(line) // file:line: function 33.3%
		if len(fields) != 3 || fields[2] == "0.0%" {
			continue
		}
		file, _, _ := strings.Cut(strings.TrimPrefix(fields[0], module), ":")
		if strings.HasPrefix(file, "test/") || fields[0] == "total" {
			continue
		}
		entered = append(entered, file+" "+fields[1])
	}
	return entered
}

func command(t *testing.T, env []string, name string, args ...string) (output string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// byFolder yields the names of the files by their folders, in order.
func byFolder(files []string) func(yield func(folder string, names []string) bool) {
	names := make(map[string][]string)
	for _, file := range files {
		names[path.Dir(file)] = append(names[path.Dir(file)], path.Base(file))
	}
	return func(yield func(string, []string) bool) {
		for _, folder := range slices.Sorted(maps.Keys(names)) {
			if !yield(folder, names[folder]) {
				return
			}
		}
	}
}

func linesOf(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(path.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// comparePage compares the list after the page's marker, or writes the list with -update-core.
func comparePage(t *testing.T, list string) {
	t.Helper()
	const mark = "<!-- What follows is written by TestTrustedCore -update-core. -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, old, found := strings.Cut(string(text), mark)
	switch {
	case !found:
		t.Fatalf("%s lacks its mark", page)
	case *update:
		if err := os.WriteFile(page, []byte(head+mark+list), 0o644); err != nil {
			t.Fatal(err)
		}
	case old != list:
		t.Errorf("%s lists other files: go test -run TestTrustedCore -update-core. It should have\n%s", page, list)
	}
}
