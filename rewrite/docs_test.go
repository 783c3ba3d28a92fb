package rewrite

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

const docFile = "../docs/statements.md"

// docHead comes before the tables, which are made from the golden files.
const docHead = `# Statements

What sqlfence does with a statement that names a registered table, here ` + "`" + `books` + "`" + ` with a row fence:

- **guarded**: it is sent with a guard inside, which raises an error where the token is stale. All
  of the statement's own bytes stay, in their order.
- **refused**: it is not sent. The error says why, what to write instead, and where in the text.
  Under ` + "`" + `Bypass` + "`" + ` it is sent as it is. A statement that isn't recognised is refused.
- **passed**: it is sent byte for byte: it writes to no registered table, or it can't be read and
  names none.

| subject | how it is |
|---|---|
| ` + "`" + `UPDATE` + "`" + `, ` + "`" + `DELETE` + "`" + `, ` + "`" + `INSERT` + "`" + `, ` + "`" + `MERGE` + "`" + `, writes inside of ` + "`" + `WITH` + "`" + ` and ` + "`" + `EXPLAIN ANALYZE` + "`" + ` | guarded, but for [what is refused](#refused); also with aliases, ` + "`" + `ONLY` + "`" + `, ` + "`" + `FROM` + "`" + `, ` + "`" + `USING` + "`" + `, ` + "`" + `RETURNING` + "`" + `, ` + "`" + `ON CONFLICT` + "`" + `. INSERT needs a list of columns, unless the table has the ledger alone |
| reads, ` + "`" + `CREATE TABLE` + "`" + `, ` + "`" + `CREATE INDEX` + "`" + `, ` + "`" + `LOCK` + "`" + ` and others that change no rows | passed |
| ` + "`" + `TRUNCATE` + "`" + `, ` + "`" + `DROP` + "`" + `, ` + "`" + `ALTER` + "`" + `, ` + "`" + `COPY … FROM` + "`" + `, ` + "`" + `REPLACE` + "`" + ` (except under the ledger alone), ` + "`" + `PREPARE` + "`" + ` of a write, new partitions, anything else | refused |
| sqlfence's own tables: fencing_tokens, fencing_leases, rowlocks, in any schema | always registered. Reads pass, and statements that change no rows, such as LOCK and GRANT. Writes are refused, and definitions of one of them or of a view of one |
| PostgreSQL's tables and views in pg_catalog, SQLite's sqlite_schema | writes are refused, as their rows define tables, triggers and functions |
| views | of a registered table's name: CREATE VIEW is refused, and so are writes to one by rules with columns, such as RowFence and Key ([why](promises.md#what-it-cant-promise)) |
| names | folded as the database folds them. "books" means books in any schema; "shop.books" means that one and an unqualified books, but not other.books. A write names the schema where several registrations may be meant: shop.books and blog.books, or a pattern. In PostgreSQL a word is refused if the database's locale may fold it to a registered name, such as BÜCHER to bücher in LATIN1 |
| what the text doesn't show | not recognised: a name that a function builds at run time; a view, trigger, rule or procedure that writes to the table; an unregistered partition, parent or child of it; a shadow table of SQLite's FTS5; an EXECUTE of what was prepared under Bypass |
| DO | refused if its code can build statements at run time, also without a registered name |
| settings of PostgreSQL that the text doesn't show, as one of them turns triggers off | refused: set_config with a name that is no constant or argument, an UPDATE of pg_settings, and a function that runs a text, such as query_to_xml, unless that is a constant without set_config. Write ` + "`" + `set_config('app.user', $1, true)` + "`" + `. An argument for a name has to be a string with a dot |
| several statements in one text | guarded one by one, if they only read and write rows, have no arguments, and are run by an Exec that isn't prepared; a Query is refused. Where one fails, it is as without sqlfence: PostgreSQL undoes the whole text, SQLite the failed statement alone, unless a transaction is rolled back |
| SQLite's constraints with ON CONFLICT REPLACE, which delete other rows silently | a guarded INSERT or UPDATE of a table with a row fence, key or claim gets OR ABORT, unless it has an OR clause. That overrides the declaration, and the OR clauses of statements in the table's triggers |

## Counts, keys that are NULL, positions of errors

- ` + "`" + `Result.RowsAffected` + "`" + ` and SQLite's ` + "`" + `changes()` + "`" + ` count the application's rows, as without sqlfence;
  ` + "`" + `total_changes()` + "`" + ` also counts those of tokens issued on the connection.
- MySQL's ` + "`" + `ROW_COUNT()` + "`" + ` directly behind a guarded write is as without sqlfence. Inside of one, as in
  ` + "`" + `ON DUPLICATE KEY UPDATE n = ROW_COUNT()` + "`" + `, it can be -1, because of the connection's
  [first question](servers.md#what-it-costs): read it by a statement of its own.
- On MySQL and MariaDB, under ` + "`" + `Ledger` + "`" + ` the row of the ledger counts in the position of an error: "at row 2" is the first row.
- On MySQL and MariaDB, ` + "`" + `FOUND_ROWS()` + "`" + ` in a write under ` + "`" + `Ledger` + "`" + ` or ` + "`" + `ClaimOf` + "`" + ` is refused, because it would count the rows of
  the guard: read it before the write.
- On MySQL, under ` + "`" + `Ledger` + "`" + ` a prepared argument that isn't of its column's type, such as bytes for a BIT, may be converted
  differently in the first column of an INSERT: name a column first that gets a constant.
- Under ` + "`" + `Key` + "`" + ` a row with ` + "`" + `id` + "`" + ` NULL gets its key from the database, has no token before, and is
  refused. Write the key, or use ` + "`" + `UnfencedInserts` + "`" + `; for sealed tables see [sealed.md](sealed.md).
- The position in an error of PostgreSQL's counts in the text that was sent, with its guard;
  [Explain](cli.md#explain) shows that text.

## Which error comes first

A write of a holder that has been replaced is ` + "`" + `ErrStale` + "`" + `, whatever else is wrong with it: it breaks
a constraint, fails in an expression or a trigger, or meets no row. The driver's error inside is the
guard's, not that of the constraint. Exceptions:

| where | which error |
|---|---|
| the database can't read or find something, such as a function; ` + "`" + `Prepare` + "`" + `, which looks at no token | the database's |
| the holder is replaced while the statement runs, as where it waits for a lock | either one; nothing is written |
| ` + "`" + `RowFence` + "`" + ` without ` + "`" + `Ledger` + "`" + `, INSERT | the constraint's: a new row has no mark |
| the same, no row is met | none |
| the same, a condition fails; in PostgreSQL also an expression of SET | that one. Constraints and triggers come after the guard |
| ` + "`" + `Ledger` + "`" + ` in a transaction of PostgreSQL, which the first error ends, so that nothing can be asked after it | the server's, in the cases below |
| ` + "`" + `Ledger` + "`" + ` in SQLite, no row is met | none if the table is empty. None if an index has no such row, unless one of the first four conditions joined by AND is column = value, with a placeholder or a constant. None with ` + "`" + `Key` + "`" + `, and in a DELETE with a row fence |

In a transaction of PostgreSQL the server's error comes before that of the ` + "`" + `Ledger` + "`" + ` if

- the server has it before it executes the statement: a constant, or an argument too long for its
  column;
- a BEFORE trigger of the application ` + "`" + `FOR EACH STATEMENT` + "`" + ` raises it;
- the isolation level is REPEATABLE READ or SERIALIZABLE, and the holder was replaced after the
  transaction's first statement;
- the statement has WHERE CURRENT OF; or the table has no fence column, and the statement is
  - ` + "`" + `DEFAULT VALUES` + "`" + `,
  - an INSERT of several rows with a first one of only placeholders, texts and DEFAULT,
  - an INSERT of a query with OFFSET, FETCH or FOR at its end, or with LIMIT in brackets around all
    of it.

These tables are made from the statements that the rewriter is tested with.

## Guarded and passed

A line shows some of the statements with the same outcome. Where only some of the databases have
one, or it is tested in only some of them, the line names these.

| | Statements | |
|---|---|---|
`

// docRefused comes before the reasons.
const docRefused = `
## Refused

Each reason with one statement, and the databases in which a statement was refused for it. A text
"can't be read" where a string, a quoted name, a comment or a bracket is never closed, and where it
has a NUL byte or isn't UTF-8.

| Statement | | Why, and what to write instead |
|---|---|---|
`

// A docGroup is a subject: a hazard's statements, with the verdicts that they have under some rules, which
// are row where it names none.
type docGroup struct{ hazard, title, rules string }

// docGroups are the hazards, which are the page's subjects, in its order.
var docGroups = []docGroup{
	{"plain", "UPDATE, DELETE and INSERT", ""},
	{"insert", "INSERT: where the rows come from", ""},
	{"new", "INSERT into a table with Key and UnfencedInserts", "new"},
	{"conflict", "INSERT: ON CONFLICT and ON DUPLICATE KEY UPDATE", ""},
	{"assignment", "UPDATE: SET", ""},
	{"condition", "WHERE", ""},
	{"returning", "RETURNING", ""},
	{"with", "WITH", ""},
	{"joined", "Writes of joined tables", ""},
	{"merge", "MERGE", ""},
	{"explain", "EXPLAIN", ""},
	{"refused", "Other statements that write", ""},
	{"passes", "Other statements that don't write", ""},
	{"name", "Names of the table", ""},
	{"alias", "Aliases", ""},
	{"label", "Keywords as names of columns", ""},
	{"placeholder", "Placeholders", ""},
	{"string", "Strings", ""},
	{"comment", "Comments", ""},
	{"semicolon", "Semicolons", ""},
	{"injection", "Text that tries to leave its clause", ""},
	{"serial", "Tables with Serial, here without RowFence", "serial"},
	{"version", "The same under WithSerial", "version"},
	{"claim", "Tables with Claim", "claim"},
	{"claim", "The same where rows are taken over", "takeover"},
	{"claimof", "Tables with ClaimOf", "claimof"},
	{"lock", "Tables with EditLock, here without RowFence", "lock"},
	{"sealed", "Sealed tables", "sealed"},
}

// TestDocs compares docs/statements.md with the corpus; with -update it writes it.
func TestDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString(docHead)
	var refusals []docRefusal
	for _, g := range docGroups {
		title := g.title
		for _, l := range docLines(t, g.hazard, cmp.Or(g.rules, "row")) {
			if !l.isRefused() {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", title, strings.Join(l.examples(), "<br>"), l.verdicts.cell())
				title = ""
			}
			refusals = addRefusals(refusals, l)
		}
	}
	b.WriteString(docRefused)
	for _, r := range refusals {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.example, r.in(), r.reason)
	}
	if *update {
		if err := os.WriteFile(docFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(content) != b.String() {
		t.Errorf("%s is out of date: go test . -run Docs -update", docFile)
	}
	for _, d := range docDialects {
		for _, s := range corpus(t, d) {
			hazard, _, _ := strings.Cut(s.name, ":")
			if !slices.ContainsFunc(docGroups, func(g docGroup) bool { return g.hazard == hazard }) {
				t.Errorf("%s has no section for %q", docFile, s.name)
			}
		}
	}
}

// A docLine is for the kinds of statement with the same verdict.
type docLine struct {
	kinds    []docKind
	verdicts docVerdicts
}

// docVerdicts are those in docDialects; empty for none.
type docVerdicts [len(docDialects)]string

// cell returns the verdicts, each with its databases, unless it is that of all.
func (v *docVerdicts) cell() string {
	var said []string
	for d, verdict := range v {
		if verdict == "" || slices.Contains(v[:d], verdict) {
			continue
		}
		var names []string
		for other := range v {
			if v[other] == verdict {
				names = append(names, docDialects[other].String())
			}
		}
		verdict, _, _ = strings.Cut(verdict, ":")
		if len(names) < len(v) {
			verdict = strings.Join(names, ", ") + ": " + verdict
		}
		said = append(said, verdict)
	}
	return strings.Join(said, "<br>")
}

// isRefused reports whether all verdicts are refusals.
func (l *docLine) isRefused() bool {
	return !slices.ContainsFunc(l.verdicts[:], func(v string) bool { return v != "" && !strings.HasPrefix(v, "refused") })
}

// A docRefusal is a reason, with a statement and the databases in which one is refused for it.
type docRefusal struct {
	reason, example string
	dialects        [len(docDialects)]bool
}

// in names the databases.
func (r *docRefusal) in() string {
	var names []string
	for d, in := range r.dialects {
		if in {
			names = append(names, docDialects[d].String())
		}
	}
	if len(names) == len(docDialects) {
		return "all"
	}
	return strings.Join(names, ", ")
}

// docBroken is before the reasons for which a text can't be read.
const docBroken = "it can't be read: "

// addRefusals adds the reasons of a line, but for those of a text that lacks a part, which the
// databases refuse as well.
func addRefusals(to []docRefusal, l *docLine) []docRefusal {
	for d, v := range l.verdicts {
		reason, ok := strings.CutPrefix(v, "refused: ")
		if !ok || strings.HasPrefix(reason, "expected ") {
			continue
		}
		if broken, ok := strings.CutPrefix(reason, docBroken); ok && !strings.Contains(broken, ";") {
			reason = docBroken[:len(docBroken)-2] // as its texts aren't SQL
		}
		why, _, _ := strings.Cut(reason, ";")
		i := slices.IndexFunc(to, func(r docRefusal) bool { return r.reason == why || strings.HasPrefix(r.reason, why+";") })
		if i < 0 {
			i = len(to)
			k := l.kinds[slices.IndexFunc(l.kinds, func(k docKind) bool { return k.verdicts[d] == v })]
			to = append(to, docRefusal{reason: reason, example: docCode(k.sql)})
		}
		to[i].dialects[d] = true
	}
	return to
}

// A docKind is what the samples of one name in all dialects are of.
type docKind struct {
	name, sql string
	verdicts  docVerdicts
}

var docDialects = [...]databases.Dialect{databases.Postgres, databases.SQLite, databases.MySQL}

// lacks reports whether a kind has no verdict in a dialect in which the line has one.
func (k *docKind) lacks(l *docLine) bool {
	for d, v := range k.verdicts {
		if v == "" && l.verdicts[d] != "" {
			return true
		}
	}
	return false
}

// dialects returns those in which the kind has a verdict.
func (k *docKind) dialects() string {
	var names []string
	for d, v := range k.verdicts {
		if v != "" {
			names = append(names, docDialects[d].String())
		}
	}
	return strings.Join(names, ", ")
}

// docLines returns a section's lines: a sample of one name in all dialects is
// of one kind. Those that are refused come last.
func docLines(t *testing.T, hazard, rules string) (lines []*docLine) {
	t.Helper()
	var kinds []*docKind
	for i, d := range docDialects {
		for _, s := range corpus(t, d) {
			name, ok := strings.CutPrefix(s.name, hazard+": ")
			if !ok || !slices.Contains(s.rules, rules) {
				continue
			}
			k := slices.IndexFunc(kinds, func(k *docKind) bool { return k.name == name })
			if k < 0 {
				k = len(kinds)
				kinds = append(kinds, &docKind{name: name, sql: s.sql})
			}
			kinds[k].verdicts[i] = docVerdict(s.plan(t, d, rules))
		}
	}
	for _, k := range kinds {
		i := slices.IndexFunc(lines, k.fits)
		if i < 0 {
			i = len(lines)
			lines = append(lines, &docLine{})
		}
		l := lines[i]
		for d, v := range k.verdicts {
			if v != "" {
				l.verdicts[d] = v
			}
		}
		l.kinds = append(l.kinds, *k)
	}
	slices.SortStableFunc(lines, func(a, b *docLine) int { return a.refusals() - b.refusals() })
	return lines
}

// fits tells whether a kind belongs on a line: every verdict of all is the same
// one, or the verdicts are the same in each dialect.
func (k *docKind) fits(line *docLine) bool {
	all := slices.DeleteFunc(append(k.verdicts[:], line.verdicts[:]...), func(v string) bool { return v == "" })
	slices.Sort(all)
	return len(slices.Compact(all)) == 1 || k.verdicts == line.verdicts
}

// examples returns some of the statements: one that is tested in each dialect of the line, or in
// several, then one of each dialect that has none yet.
func (l *docLine) examples() (shown []string) {
	var covered [len(docDialects)]bool
	add := func(fits func(docKind) bool) bool {
		for _, k := range l.kinds {
			if code := docCode(k.sql); fits(k) && (len(shown) == 0 || len(code) < 120) {
				for d, v := range k.verdicts {
					covered[d] = covered[d] || v != ""
				}
				if k.lacks(l) {
					code += " (" + k.dialects() + ")"
				}
				shown = append(shown, code)
				return true
			}
		}
		return false
	}
	if add(func(k docKind) bool { return !k.lacks(l) }) {
		return shown
	}
	add(func(k docKind) bool { return strings.Contains(k.dialects(), ",") })
	for d := range docDialects {
		if !covered[d] {
			add(func(k docKind) bool { return k.verdicts[d] != "" })
		}
	}
	return shown
}

func (l *docLine) refusals() (n int) {
	for _, v := range l.verdicts {
		if strings.HasPrefix(v, "refused") {
			n = 1
		}
	}
	return n
}

func docVerdict(p *Plan) string {
	switch p.Verdict {
	case guard.Guard:
		return "guarded"
	case guard.Pass:
		return "passed"
	}
	return "refused: " + p.Refusal.Reason
}

// docCode writes a statement as code in a table.
func docCode(sql string) string {
	if v := visible(sql); v != sql {
		sql = strings.TrimPrefix(v, "go ") // as a Go string
	}
	fence := "`"
	if strings.Contains(sql, "`") {
		fence = "``"
	}
	return fence + strings.NewReplacer("\n", " ⏎ ", "|", "\\|").Replace(sql) + fence
}
