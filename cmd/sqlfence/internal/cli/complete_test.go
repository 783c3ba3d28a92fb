package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
)

// program runs a command line, checks the exit status, and returns both outputs.
func program(t *testing.T, status int, args ...string) (out, errs string) {
	t.Helper()
	var stdout, stderr strings.Builder
	if got := Main(args, strings.NewReader(""), &stdout, &stderr); got != status {
		t.Fatalf("%q: status %d, want %d: %s", args, got, status, stderr.String())
	}
	return stdout.String(), stderr.String()
}

// freshDatabase names an empty SQLite database in the environment.
func freshDatabase(t *testing.T) (dsn string) {
	t.Helper()
	dsn = "sqlite:" + filepath.Join(t.TempDir(), "books.db")
	t.Setenv(dsnVariable, dsn)
	return dsn
}

// A shell completes the names of the ledger and the keys of live leases.
func TestCompletionKnowsNames(t *testing.T) {
	dsn := freshDatabase(t)
	complete := func(args ...string) string {
		t.Helper()
		out, _ := program(t, statusDone, append([]string{"__complete"}, args...)...)
		words := strings.Split(strings.TrimSpace(out), "\n")
		words = slices.DeleteFunc(words, func(word string) bool { return strings.HasPrefix(word, "--") }) // required flags
		return strings.Join(words, " ")
	}
	if got := complete("tokens", "issue", ""); got != ":4" {
		t.Errorf("without a database: %q", got)
	}
	program(t, statusDone, "init", "--apply")
	for _, name := range []string{"books", "jobs/1", "jobs/2", "a\tb"} {
		program(t, statusDone, "tokens", "issue", name, "--reason", "test")
	}
	source, err := database.Parse(dsn, false)
	if err != nil {
		t.Fatal(err)
	}
	db, err := source.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	leases, err := source.Leases(db)
	if err != nil {
		t.Fatal(err)
	}
	held, err := leases.Acquire(t.Context(), "nightly")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release(t.Context())
	for line, want := range map[string]string{
		"tokens issue|jo":           "jobs/1 jobs/2 :4",
		"tokens issue|":             "books jobs/1 jobs/2 nightly :4",
		"tokens issue books|":       ":4",
		"tokens adopt|b":            "books :4",
		"tokens rotate|b":           "books :4",
		"tokens list|b":             "books :4",
		"tokens delete jobs/1|jobs": "jobs/2 :4",
		"watch|n":                   "nightly :4",
		"leases release|":           "nightly :4",
		"leases release|b":          ":4",
		"run|":                      "nightly :4",
	} {
		args, word, _ := strings.Cut(line, "|")
		if got := complete(append(strings.Fields(args), word)...); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// init and tokens delete print what was created, and what wasn't found.
func TestCommandsSayWhatTheyChanged(t *testing.T) {
	freshDatabase(t)
	if out, _ := program(t, statusDone, "init", "--apply"); out != "sqlfence's tables are there; created: fencing_tokens, fencing_leases, rowlocks, ledger_triggers\n" {
		t.Errorf("the first init: %q", out)
	}
	if out, _ := program(t, statusDone, "init", "--apply"); out != "sqlfence's tables are there; created: nothing\n" {
		t.Errorf("the second init: %q", out)
	}
	program(t, statusDone, "tokens", "issue", "books", "--reason", "test")
	out, errs := program(t, statusDone, "tokens", "delete", "books", "nosuch", "--reason", "test")
	if out != "the ledger has no name nosuch\n" || !strings.Contains(errs, `msg="deleted books"`) {
		t.Errorf("%q, %q", out, errs)
	}
	if out, _ := program(t, statusDone, "tokens", "delete", "nosuch", "--reason", "test", "--json"); !strings.HasPrefix(out, `{"left":[],"missing":["nosuch"],"at":`) {
		t.Errorf("%q", out)
	}
}
