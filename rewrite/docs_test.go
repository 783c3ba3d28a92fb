package rewrite

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

const docFolder = "../docs/data/"

// docPassing comes before the statements that are guarded or pass.
const docPassing = `# Statements: guarded and passed

[Statements](../statements.md) describes the rules, and [refusals](refusals.md) lists the statements that are refused.
The rewriter is tested with the statements on both pages; a test writes the pages.

The table ` + "`" + `books` + "`" + ` has the rule ` + "`" + `RowFence` + "`" + `, unless the subject names other rules. Each line shows examples of
statements with the same outcome. If a line names databases, the statement doesn't exist in the other databases, or
isn't tested there. MySQL stands for MariaDB as well.

| subject | statements | outcome |
|---|---|---|
`

// docRefused comes before the reasons.
const docRefused = `# Statements: refused

[Statements](../statements.md) describes the rules. The page lists each reason once, with one statement. The error of a
refused statement contains both middle columns. MySQL stands for MariaDB as well.

"It can't be read" means: a string, a quoted name, a comment or a bracket is never closed, or the SQL contains a NUL
byte or isn't UTF-8.
`

// A docGroup is a subject of the pages: the statements of a hazard, with their verdicts under some rules. Without rules
// the verdicts are those under "row".
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
	{"injection", "Injected SQL that tries to leave its clause", ""},
	{"serial", "Tables with Serial alone", "serial"},
	{"version", "Tables with Serial alone, under WithSerial", "version"},
	{"claim", "Tables with Claim", "claim"},
	{"claim", "Tables with Claim, under WithTakeover", "takeover"},
	{"claimof", "Tables with ClaimOf", "claimof"},
	{"lock", "Tables with EditLock alone", "lock"},
	{"sealed", "Sealed tables", "sealed"},
}

// docOtherRules are rules with refusals that are in no group.
var docOtherRules = []struct{ title, rules string }{
	{"Tables with Ledger", "ledger"},
	{"Tables with Key", "key"},
	{"Tables with Key and Ledger", "keyledger"},
	{"Tables with Key and Serial, under WithSerial", "versionkey"},
	{"Tables with Serial, under WithSerial: joined tables", "version"},
	{"Tables with EditLock", "lock"},
}

// TestDocs compares the pages of statements and of refusals with the corpus. With -update it writes the pages.
func TestDocs(t *testing.T) {
	var passing, refused strings.Builder
	passing.WriteString(docPassing)
	refused.WriteString(docRefused)
	for _, g := range docGroups {
		title := g.title
		for _, l := range docLines(t, g.hazard, cmp.Or(g.rules, "row")) {
			if !l.isRefused() {
				fmt.Fprintf(&passing, "| %s | %s | %s |\n", title, strings.Join(l.examples(), "<br>"), l.verdicts.cell())
				title = ""
			}
		}
	}
	refusals := allRefusals(t)
	for i, r := range refusals {
		if i == 0 || r.group != refusals[i-1].group {
			fmt.Fprintf(&refused, "\n## %s\n\n| statement | why it is refused | write instead | databases |\n|---|---|---|---|\n", r.group)
		}
		why, instead, _ := strings.Cut(r.reason, "; ")
		fmt.Fprintf(&refused, "| %s | %s | %s | %s |\n", r.example, docText(why), docText(instead), r.in())
	}
	comparePage(t, "statements.md", passing.String())
	comparePage(t, "refusals.md", refused.String())
	for _, d := range docDialects {
		for _, s := range corpus(t, d) {
			hazard, _, _ := strings.Cut(s.name, ":")
			if !slices.ContainsFunc(docGroups, func(g docGroup) bool { return g.hazard == hazard }) {
				t.Errorf("the pages have no section for %q", s.name)
			}
		}
	}
}

// comparePage compares a page with the text that it should have; with -update it writes the page.
func comparePage(t *testing.T, name, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(docFolder+name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(docFolder + name)
	if err != nil {
		t.Fatal(err)
	}
	if string(content) != want {
		t.Errorf("%s is out of date: go test . -run Docs -update", docFolder+name)
	}
}

// A docLine is for the kinds of statement with the same verdict.
type docLine struct {
	kinds    []docKind
	verdicts docVerdicts
}

// docVerdicts are a statement's verdicts, one for each of docDialects; empty where the dialect has no such statement.
type docVerdicts [len(docDialects)]string

// cell returns the verdicts, each with its databases, unless all databases have the same verdict.
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

// A docRefusal is a reason, with an example and the databases that have such a refusal.
type docRefusal struct {
	group           string // the title of the first group with this reason
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

// docText writes a reason, or what to write instead, in a table.
func docText(s string) string {
	return cmp.Or(strings.NewReplacer("<", "&lt;", "$$", "`$$`").Replace(s), "–")
}

// docBroken begins the reasons of texts that can't be parsed.
const docBroken = "it can't be read: "

// addLine adds the reasons of a line of a group.
func addLine(to []docRefusal, group string, l *docLine) []docRefusal {
	for d, v := range l.verdicts {
		if i := slices.IndexFunc(l.kinds, func(k docKind) bool { return k.verdicts[d] == v }); i >= 0 {
			to = addRefusal(to, group, l.kinds[i].sql, d, v)
		}
	}
	return to
}

// addRefusal adds the reason of a verdict in a database, unless the statement lacks a part, which the databases refuse
// as well.
func addRefusal(to []docRefusal, group, sql string, d int, verdict string) []docRefusal {
	reason, ok := strings.CutPrefix(verdict, "refused: ")
	if !ok || strings.HasPrefix(reason, "expected ") {
		return to
	}
	if broken, ok := strings.CutPrefix(reason, docBroken); ok && !strings.Contains(broken, ";") {
		reason = docBroken[:len(docBroken)-2] // without the error's place, since the page doesn't show the text
	}
	why, _, _ := strings.Cut(reason, ";")
	i := slices.IndexFunc(to, func(r docRefusal) bool { return r.reason == why || strings.HasPrefix(r.reason, why+";") })
	if i < 0 {
		i = len(to)
		to = append(to, docRefusal{group: group, reason: reason, example: docCode(sql)})
	}
	to[i].dialects[d] = true
	return to
}

// allRefusals returns the reasons of the groups, then the reasons of rules outside of all groups.
func allRefusals(t *testing.T) (refusals []docRefusal) {
	t.Helper()
	for _, g := range docGroups {
		for _, l := range docLines(t, g.hazard, cmp.Or(g.rules, "row")) {
			refusals = addLine(refusals, g.title, l)
		}
	}
	for _, other := range docOtherRules {
		for i, d := range docDialects {
			for _, s := range corpus(t, d) {
				if slices.Contains(s.rules, other.rules) {
					refusals = addRefusal(refusals, other.title, s.sql, i, docVerdict(s.plan(t, d, other.rules)))
				}
			}
		}
	}
	return refusals
}

// A docKind is the kind of statement of all samples with one name, in all dialects.
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

// dialects returns the dialects in which the kind has a verdict.
func (k *docKind) dialects() string {
	var names []string
	for d, v := range k.verdicts {
		if v != "" {
			names = append(names, docDialects[d].String())
		}
	}
	return strings.Join(names, ", ")
}

// docLines returns a section's lines. Samples of the same name in several dialects are one kind of statement. Refused
// kinds come last.
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

// fits reports whether a kind belongs on a line: either the kind and the line have one verdict in all dialects, or they
// have the same verdict in each dialect.
func (k *docKind) fits(line *docLine) bool {
	all := slices.DeleteFunc(append(k.verdicts[:], line.verdicts[:]...), func(v string) bool { return v == "" })
	slices.Sort(all)
	return len(slices.Compact(all)) == 1 || k.verdicts == line.verdicts
}

// examples returns some of the line's statements: first one that is tested in each of the line's dialects, or in
// several, and then one for each remaining dialect.
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

// The examples of docs/statements.md are refused, and the texts to write instead are guarded.
func TestDocsExamples(t *testing.T) {
	page, err := os.ReadFile("../docs/statements.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?m)^ *\\| `(.+)` \\| `(.+)` \\| (.+) \\|$")
	found := example.FindAllStringSubmatch(string(page), -1)
	if len(found) < 5 {
		t.Fatalf("%d examples", len(found))
	}
	for _, m := range found {
		for _, d := range docDialects {
			if m[3] != "all" && !strings.Contains(m[3], d.String()) {
				continue
			}
			for i, want := range []guard.Verdict{guard.Refuse, guard.Guard} {
				s := sample{sql: m[i+1]}
				if p := s.plan(t, d, "row"); p.Verdict != want {
					t.Errorf("%v: %s: %s", d, s.sql, docVerdict(p))
				}
			}
		}
	}
}
