package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/session"
)

// A row is a line of the page's table that no run tells.
type row struct{ servers, state, how string }

// hosted is the row of servers that sqlfence knows by their version strings, which test/integration/promises/guarantees
// lists.
var hosted = row{
	"other versions; Percona Server, Percona Distribution; Aurora, RDS, Cloud SQL, AlloyDB, Azure, Neon, HeatWave and " +
		"similar hosts of PostgreSQL, MySQL or MariaDB",
	"accepted", "not run. The servers report the same code; sqlfence was never tested on the hosts' storage",
}

// modes are ways to run several servers as one.
var modes = []row{
	{"Galera; Group Replication with several primaries", "tested, `Ledger` refused", "[galera.md](../galera.md)"},
	{"Group Replication with one primary", "accepted", "not run"},
	{"TiDB 8.5.6, on its own test storage", "tested, `Sealed` refused", "[tidb.md](../tidb.md)"},
	{"Vitess 24.0.4 (vtcombo) with MySQL 9.7", "tested, `Ledger`, `Hold` and `Sealed` refused", "[vitess.md](../vitess.md)"},
	{"PostgreSQL with Patroni, synchronous and asynchronous", "tested through failovers", "[postgresql.md](../postgresql.md#patroni)"},
	{"PgBouncer, pgpool-II, HAProxy", "tested, by what each can do", "[postgresql.md](../postgresql.md#poolers)"},
	{"a proxy in front of MariaDB or MySQL that sends each statement outside of a transaction to any session",
		"leases and guards held with a test's own proxy; package `tokens` returns an error instead of a token, if the " +
			"ledger has triggers", "not supported"},
	{"a proxy that sends the statements of one session to several servers; logical replication in both directions",
		"unknown", "sqlfence can't recognise them: don't use `Ledger` there"},
}

// missing are versions that no package was found of.
var missing = row{"PostgreSQL 12 and older; MariaDB 10.6, 11.4; MySQL 8.0, 8.4", "unknown",
	"not run, because no package was at hand. sqlfence accepts them"}

// lacking holds, for each server, a feature without server support and the tests that fail without this feature.
var lacking = map[string]struct {
	what  string
	tests *regexp.Regexp
}{
	"MariaDB 10.5": {"`tokens.Delete`, which needs the SKIP LOCKED of 10.6",
		regexp.MustCompile("^tokens Test(Delete|TheDatabaseKeepsTheFloor|TenMillionNames|Storm|RotateAsksBefore)")},
}

// lacks reports whether a test fails because the server lacks the statements for it.
func lacks(r *Result, test string) bool {
	l, ok := lacking[r.Server+" "+series(r.Version)]
	return ok && l.tests.MatchString(test)
}

// serversTable is the first table of docs/data/servers.md.
func serversTable(list []string, results []Result) string {
	var b strings.Builder
	write := func(r row) { fmt.Fprintf(&b, "| %s | %s | %s |\n", r.servers, r.state, r.how) }
	b.WriteString("| server | state | tests |\n|---|---|---|\n")
	for _, server := range list {
		i := slices.IndexFunc(results, func(r Result) bool { return strings.EqualFold(r.Server+" "+series(r.Version), server) })
		if i < 0 {
			write(row{server, "accepted", "not run yet"})
			continue
		}
		write(results[i].row())
	}
	write(row{"SQLite 3.38 and later, in the process", "tested", "[by its drivers](#sqlite)"})
	write(hosted)
	write(missing)
	for _, db := range dialect.All() {
		if others := names(db.Session); len(others) > 0 {
			write(row{strings.Join(others, ", "), "refused by name", "servers with the protocol of " + db.Name})
		}
	}
	write(row{"every server with a version string that PostgreSQL, MySQL and known hosts don't report", "refused by name",
		"the error has the name"})
	write(row{"go-mysql-server, and servers that evaluate a guard without an error", "refused by the proof", ""})
	for _, m := range modes {
		write(m)
	}
	return b.String()
}

// row is the line of a server that was run.
func (r *Result) row() row {
	passed, failed := r.counts()
	state, how := "tested", fmt.Sprintf("%d tests, %s", passed, r.Date)
	if l, ok := lacking[r.Server+" "+series(r.Version)]; ok {
		state = "tested, without " + l.what
	}
	if len(failed) > 0 {
		state = fmt.Sprintf("**%d tests fail**", len(failed))
	}
	if run := slices.Sorted(maps.Keys(r.Packages)); len(run) < len(packages) {
		how += ": of " + strings.Join(run, ", ") + " only"
	}
	return row{r.Server + " " + r.Version, state, how}
}

// names returns the servers that a dialect refuses, each once, without servers that have a separate row.
func names(d *session.Dialect) (all []string) {
	for _, s := range d.Others {
		known := slices.ContainsFunc(modes, func(m row) bool { return strings.HasPrefix(m.servers, s.Name) })
		if !known && !slices.Contains(all, s.Name) {
			all = append(all, s.Name)
		}
	}
	return all
}

// The texts around the tables of docs/data/servers.md.
const (
	pageHead = `# Servers: tested, accepted and refused

This page is written by ` + "`make versions`" + ` and compared by a test. [Servers](../servers.md) explains how sqlfence
recognises a server. "Refused by name" means that guarded writes fail until the program names the server by
` + "`WithUntestedServer`" + `.

`
	pageFamily = `
## SQLite

`
)

// page is docs/data/servers.md as it is and as it should be.
func page(checkout string) (name, is, want string, err error) {
	results, err := readResults(checkout)
	if err != nil {
		return "", "", "", err
	}
	list, err := servers(checkout)
	if err != nil {
		return "", "", "", err
	}
	name = filepath.Join(checkout, "docs/data/servers.md")
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return "", "", "", err
	}
	return name, string(text), pageHead + serversTable(list, results) + pageFamily + familyTable(), nil
}

func writePage(checkout string) error {
	name, is, want, err := page(checkout)
	if err != nil || is == want {
		return err
	}
	return os.WriteFile(name, []byte(want), 0o644)
}

// series returns a version's release series: one number for PostgreSQL, two numbers for other servers.
func series(version string) string {
	parts := strings.Split(version, ".")
	if len(parts) < 3 {
		return parts[0]
	}
	return strings.Join(parts[:2], ".")
}

func compareVersions(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		m, _ := strconv.Atoi(x[i])
		n, _ := strconv.Atoi(y[i])
		if m != n {
			return m - n
		}
	}
	return len(x) - len(y)
}
