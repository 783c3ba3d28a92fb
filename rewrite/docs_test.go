package rewrite

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const docFile = "../docs/statements.md"

// docHead comes before the tables, which are made from the golden files.
const docHead = `# Statements

What sqlfence does with a statement that names a registered table, here ` + "`books`" + ` with a
row fence.

- **guarded**: it is sent with a guard inside, which raises an error where the token is
  stale. All of the statement's own bytes stay, in their order.
- **refused**: it is not sent; the error says why, what to write instead, and where in the
  text. Under ` + "`Bypass`" + ` it is sent as it is.
- **passed**: it is sent as it is, byte for byte: it writes to no registered table, or it
  can't be read and names none.

A statement that isn't recognised and names a registered table is refused.

sqlfence's own tables, fencing_tokens, fencing_leases and rowlocks in any schema, are
registered always. Reads of them pass, and so do statements that change no rows, such as
LOCK or GRANT; writes to them are refused, and statements that define one of them or a view
of one. So are writes to SQLite's sqlite_schema, as its rows define tables.

Names are folded as the database folds them. If "books" is registered, it means books in any
schema; "shop.books" means that one and an unqualified books, but not other.books. In
PostgreSQL a word is refused if the database's locale may fold it to a registered name, such
as BÜCHER to bücher in LATIN1.

sqlfence reads the statement's text alone. So it doesn't recognise

- a name that a function builds at run time;
- a view, a trigger, a rule or a procedure that writes to the table;
- a partition, a parent or a child of the table that isn't registered itself;
- a shadow table of SQLite's FTS5;
- an EXECUTE of what was prepared under Bypass.

DO is refused if its code can build statements at run time, even if it names no registered table. So is
a statement of PostgreSQL that may change a setting which its text doesn't show, as by one of them
triggers aren't fired: set_config with a name that isn't a constant or an argument, an UPDATE of
pg_settings, and a function that runs a text, such as query_to_xml, unless that is a constant without
set_config. Write set_config('app.user', $1, true). An argument for a name has to be a string with a
dot, as the application's own settings have.

Several statements in one text are guarded one by one, if they only read and write rows, have
no arguments, and are run by an Exec that isn't prepared; a Query is refused. Where one fails, it is
as without sqlfence: PostgreSQL undoes the whole text, SQLite the failed statement
alone, unless a transaction is rolled back.

In SQLite a constraint may be declared with ON CONFLICT REPLACE, which deletes other rows
silently. A guarded INSERT or UPDATE of a table with a row fence, a key or a claim therefore gets OR
ABORT, unless it has an OR clause of its own. That takes precedence over the declaration, and, as
SQLite has it, over the OR clauses of statements in the table's triggers.

## Counts, keys that are NULL, positions of errors

- ` + "`" + `Result.RowsAffected` + "`" + ` and SQLite's ` + "`" + `changes()` + "`" + ` count the rows of the application's statement, as without
  sqlfence; ` + "`" + `total_changes()` + "`" + ` counts those of tokens issued on the connection, too.
- MySQL's ` + "`" + `ROW_COUNT()` + "`" + ` behind a guarded write is as without sqlfence. Inside of one, as in ` + "`" + `ON DUPLICATE
  KEY UPDATE n = ROW_COUNT()` + "`" + `, it can be -1: a connection asks its server [a question](servers.md#what-it-costs)
  before its first guarded write. Read the count by a statement of its own, directly behind the write.
- Under ` + "`" + `Key` + "`" + ` a row with ` + "`" + `id` + "`" + ` NULL gets its key from the database: it has no token before it runs, and is refused.
  Register the table with ` + "`" + `UnfencedInserts` + "`" + `, or write the key. On a sealed table see [sealed.md](sealed.md).
- The position in an error of PostgreSQL's, such as that of a column which isn't there, counts in the text
  that was sent, with its guard; [Explain](cli.md#explain) shows that text. The error is the driver's own.

## Which error comes first

A write of a holder that has been replaced is ` + "`" + `ErrStale` + "`" + `, whatever else is wrong with it: it breaks a
constraint, fails in an expression or in a trigger, or meets no row. The driver's error inside is the
guard's; that of the constraint can't be found in it. What the database can't read or find, such as a
function that doesn't exist, keeps its own error.

Exceptions:

- **` + "`" + `RowFence` + "`" + ` without ` + "`" + `Ledger` + "`" + `** compares the rows that the write reaches. A new row has no mark, so an
  INSERT gets the constraint's error, and a write that meets no row gets none. A condition that fails
  comes first, and in PostgreSQL so does an expression of SET; constraints and triggers don't.
- **` + "`" + `Ledger` + "`" + ` in a transaction of PostgreSQL**, which is over by the first error, so that nothing can be
  asked after it. There its error comes first if
  - the server has it before it executes the statement: a constant, or an argument that is too long for
    its column;
  - a BEFORE trigger of the application ` + "`" + `FOR EACH STATEMENT` + "`" + ` raises it;
  - the statement is ` + "`" + `DEFAULT VALUES` + "`" + `, an INSERT of several rows with a first one of only placeholders,
    texts and DEFAULT, or an INSERT of a query with OFFSET, FETCH or FOR at its end, or with LIMIT in
    brackets around all of it, and the table has no fence column; or if the statement has WHERE CURRENT OF;
  - the isolation level is REPEATABLE READ or SERIALIZABLE, and the holder was replaced after the
    transaction's first statement.
- **` + "`" + `Ledger` + "`" + ` in SQLite**: a write that finds no row has no error if the table is empty, or if an index has
  no such row: but it has where one of the first four conditions, which AND joins, is column = value, and the value is
  a placeholder or a constant. With ` + "`" + `Key` + "`" + `, and in a DELETE with a row fence, it has none.
- A holder that is replaced while the statement runs, as where it waits for a lock, gets either error. Nothing is
  written.
- An error of ` + "`" + `Prepare` + "`" + ` is the database's: no token is looked at.

The tables below are made from the statements that the rewriter is tested with. A line
shows some of the statements with the same outcome. A statement that exists, or is tested, in
only one of the databases says which; – means that no such statement is tested there.
`

// A docGroup is a section: a hazard's statements, with the verdicts that they have under some rules, which
// are row where it names none.
type docGroup struct{ hazard, title, rules string }

// docGroups are the hazards, which are the page's sections, in its order.
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
	{"lock", "Tables with EditLock, here without RowFence", "lock"},
	{"sealed", "Sealed tables", "sealed"},
}

// TestDocs compares docs/statements.md with the corpus; with -update it writes it.
func TestDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString(docHead)
	for _, g := range docGroups {
		fmt.Fprintf(&b, "\n## %s\n\n| Statements | PostgreSQL | SQLite | MySQL |\n|---|---|---|---|\n", g.title)
		for _, l := range docLines(t, g.hazard, cmp.Or(g.rules, "row")) {
			fmt.Fprintf(&b, "| %s |", strings.Join(l.examples(), "<br>"))
			for d, v := range l.verdicts {
				if strings.HasPrefix(v, "refused") && slices.Contains(l.verdicts[:d], v) {
					v = "refused too"
				}
				fmt.Fprintf(&b, " %s |", cmp.Or(v, "–"))
			}
			b.WriteString("\n")
		}
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

// A docKind is what the samples of one name in all dialects are of.
type docKind struct {
	name, sql string
	verdicts  docVerdicts
}

var docDialects = [...]Dialect{Postgres, SQLite, MySQL}

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

// examples returns some of the statements: the first ones that are tested in each
// dialect of the line, or in several, then the first of each dialect. Of those that are
// refused one is enough, since the reason is beside it.
func (l *docLine) examples() (shown []string) {
	most := 4
	if l.refusals() > 0 {
		most = 1
	}
	add := func(most int, fits func(docKind) bool) {
		for _, k := range l.kinds {
			if code := docCode(k.sql); len(shown) < most && fits(k) && (len(shown) == 0 || len(code) < 120) {
				if k.lacks(l) {
					code += " (" + k.dialects() + ")"
				}
				if !slices.Contains(shown, code) {
					shown = append(shown, code)
				}
			}
		}
	}
	add(most, func(k docKind) bool { return !k.lacks(l) })
	if most == 1 && len(shown) == 1 {
		return shown
	}
	add(most, func(k docKind) bool { return strings.Contains(k.dialects(), ",") })
	for d := range docDialects {
		add(min(most+len(docDialects)-1, len(shown)+1), func(k docKind) bool { return k.verdicts[d] != "" && k.lacks(l) })
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
	case Guard:
		return "guarded"
	case Pass:
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
