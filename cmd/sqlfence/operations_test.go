package main

import (
	"database/sql"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/lease"
)

var update = flag.Bool("update", false, "write docs/operations.md anew")

// stages are the states that the sections of docs/operations.md describe. A stage is created by commands, and by
// statements after "sql:".
var stages = map[string][]string{
	"All writes fail with ErrStale": {
		"sqlfence init --issuers --apply", "sqlfence tokens repair --floor 41 --reason stage", "lease: books worker-2", "sql:UPDATE books SET fence_token = 97 WHERE id = 2",
	},
	"ErrNotIssued after a failover or a restore": {
		"sqlfence tokens issue books --reason stage", "sql:UPDATE books SET fence_token = 4711",
	},
	"Tokens near the limit": {
		"sqlfence tokens issue pens --reason stage", "sqlfence tokens adopt books 800000000000000 --reason stage",
		"sql:UPDATE books SET fence_token = 800000000000000",
	},
	"A dead process holds the lease": {"sqlfence tokens repair --floor 41 --reason stage", "lease: books worker-3"},
	"A table isn't fenced":           {"sql:CREATE TABLE pens (id integer PRIMARY KEY, price bigint)"},
	"A statement is refused":         nil,
	"ErrNotSetUp": {
		"sql:DROP TABLE fencing_tokens", "sql:DROP TABLE fencing_leases", "sql:DROP TABLE rowlocks",
	},
}

// Each command on docs/operations.md prints what the page shows, in the state that its section describes. The test runs
// on SQLite; the scripts run the same commands on all databases.
func TestOperations(t *testing.T) {
	const name = "../../docs/operations.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.SplitAfter(string(text), "\n## ")
	seen := 0
	for i, section := range sections {
		heading, _, _ := strings.Cut(section, "\n")
		stage, staged := stages[heading]
		if !strings.Contains(section, "```console\n") {
			continue
		}
		if !staged {
			t.Errorf("%q has no stage", heading)
			continue
		}
		seen++
		dsn := freshSQLite(t)
		execute(t, opened(t, dsn), "CREATE TABLE books (id integer PRIMARY KEY, price bigint, fence_token bigint NOT NULL DEFAULT 0)")
		execute(t, opened(t, dsn), "INSERT INTO books (id, price) VALUES (1, 10), (2, 20)")
		shell(t, dsn, "sqlfence init --apply")
		for _, step := range stage {
			perform(t, dsn, step)
		}
		sections[i] = console.ReplaceAllStringFunc(section, func(block string) string {
			answered := "```console\n"
			for line := range strings.Lines(strings.TrimPrefix(block, "```console\n")) {
				if command, ok := strings.CutPrefix(line, "$ "); ok {
					answered += line + shell(t, dsn, strings.TrimSpace(command))
				}
			}
			if answered += "```\n"; answered != block && !*update {
				t.Errorf("%s: the page has\n%swant\n%s", heading, block, answered)
			}
			return answered
		})
	}
	if seen != len(stages) {
		t.Errorf("%d sections have commands, want %d", seen, len(stages))
	}
	if *update {
		if err := os.WriteFile(name, []byte(strings.Join(sections, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The databases accept the queries on docs/operations.md.
func TestOperationsQueries(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for database, fresh := range map[string]func(testing.TB) string{"PostgreSQL": freshPostgres, "MariaDB": freshMySQL} {
		t.Run(database, func(t *testing.T) {
			db, found := opened(t, fresh(t)), 0
			for _, block := range regexp.MustCompile("(?s)```sql\n-- (\\w+).*?\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
				if block[1] == database {
					execute(t, db, block[2])
					found++
				}
			}
			if found != 1 {
				t.Errorf("%d queries", found)
			}
		})
	}
}

var (
	console = regexp.MustCompile("(?s)```console\n.*?```\n")
	moments = regexp.MustCompile(`20\d\d-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`)
	persons = regexp.MustCompile(`by=\S+`)
)

func opened(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	source, err := database.Parse(dsn, true)
	if err != nil {
		t.Fatal(err)
	}
	db, err := source.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// shell returns a command's output, without times and the name of the person who runs it.
func shell(t *testing.T, dsn, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Env = append(os.Environ(), "SQLFENCE_DSN="+dsn)
	written, err := cmd.CombinedOutput()
	if exit := cmd.ProcessState; exit == nil || exit.ExitCode() < 0 || exit.ExitCode() == 2 {
		t.Errorf("%s: %v\n%s", command, err, written)
	}
	return persons.ReplaceAllString(moments.ReplaceAllString(string(written), "…"), "by=…")
}

func perform(t *testing.T, dsn, step string) {
	t.Helper()
	if statement, ok := strings.CutPrefix(step, "sql:"); ok {
		execute(t, opened(t, dsn), statement)
	} else if holder, ok := strings.CutPrefix(step, "lease: "); ok {
		key, owner, _ := strings.Cut(holder, " ")
		leases, err := lease.New(opened(t, dsn))
		if err == nil {
			_, err = leases.Acquire(t.Context(), key, lease.Holder(owner), lease.TTL(time.Hour))
		}
		if err != nil {
			t.Fatal(err)
		}
	} else {
		shell(t, dsn, step)
	}
}
