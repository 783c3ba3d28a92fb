package rewrite

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/test/golden"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

var update = flag.Bool("update", false, "write what the rewriter makes of the statements into the golden files")

// A sample is a statement of the golden files, which contain the statements and their plans. Package golden describes
// the files. The rules are names in rulesets. After a change of the rewriter, run go test -run Golden -update and read
// the difference.
type sample struct {
	name  string
	rules []string
	sql   string
}

var goldenLock = guard.Lock{By: "editedby", Since: "editedsince", Expiry: "editedexpiry"}

var goldenClaims = guard.Claims{Name: "jobs", Key: "id", Claim: "attempt"}

// rulesets are the rules that samples are planned with.
var rulesets = map[string]struct {
	table  Table
	values Values
}{
	"row":       {Table{Name: "books", FenceColumn: "fence_token"}, Values{}},
	"ledger":    {Table{Name: "books", Ledger: true}, Values{}},
	"both":      {Table{Name: "books", FenceColumn: "fence_token", Ledger: true}, Values{}},
	"single":    {Table{Name: "books", FenceColumn: "fence_token", SingleUse: true}, Values{}},
	"key":       {Table{Name: "books", FenceColumn: "fence_token", Key: "id"}, Values{}},
	"two":       {Table{Name: "books", FenceColumn: "fence_token", Key: "id"}, Values{Tables: []TableValues{{Rows: []int{0, 1}}}}},
	"new":       {Table{Name: "books", FenceColumn: "fence_token", Key: "id", UnfencedInserts: true}, Values{}},
	"newnone":   {Table{Name: "books", FenceColumn: "fence_token", Key: "id", UnfencedInserts: true}, Values{Tables: []TableValues{{Unfenced: true}}}},
	"newmixed":  {Table{Name: "books", FenceColumn: "fence_token", Key: "id", UnfencedInserts: true}, Values{Tables: []TableValues{{Rows: []int{0, guard.NoToken}}}}},
	"newledger": {Table{Name: "books", Ledger: true, Key: "id", UnfencedInserts: true}, Values{}},
	"newall":    {Table{Name: "books", FenceColumn: "fence_token", Ledger: true, Serial: "serial", UnfencedInserts: true}, Values{}},
	"newempty":  {Table{Name: "books", Ledger: true, UnfencedInserts: true}, Values{Tables: []TableValues{{Unfenced: true}}}},
	"keyledger": {Table{Name: "books", Ledger: true, Key: "id"}, Values{}},
	"keyboth":   {Table{Name: "books", FenceColumn: "fence_token", Ledger: true, Key: "id"}, Values{}},
	"literal":   {Table{Name: "books", FenceColumn: "fence_token", Ledger: true}, Values{Literal: true}},

	"sealed":       {Table{Name: "books", FenceColumn: "fence_token", Sealed: true}, Values{}},
	"sealedopen":   {Table{Name: "books", FenceColumn: "fence_token", Sealed: true}, Values{Tables: []TableValues{{Unsealed: true}}}},
	"sealedboth":   {Table{Name: "books", FenceColumn: "fence_token", Ledger: true, Sealed: true}, Values{}},
	"sealedsingle": {Table{Name: "books", FenceColumn: "fence_token", SingleUse: true, Sealed: true}, Values{Literal: true}},
	"sealedtwo":    {Table{Name: "books", FenceColumn: "fence_token", Key: "id", Sealed: true}, Values{Tables: []TableValues{{Rows: []int{0, 1}}}}},
	"sealedall":    {Table{Name: "books", FenceColumn: "fence_token", Ledger: true, Serial: "serial", Lock: goldenLock, Sealed: true}, Values{}},

	"serial":     {Table{Name: "books", Serial: "serial"}, Values{}},
	"serialboth": {Table{Name: "books", Serial: "serial", FenceColumn: "fence_token", Ledger: true}, Values{}},
	"required":   {Table{Name: "books", Serial: "serial", SerialRequired: true}, Values{}},

	"lock":        {Table{Name: "books", Lock: goldenLock}, Values{Editor: "o'neill"}},
	"lockall":     {Table{Name: "books", FenceColumn: "fence_token", Ledger: true, Serial: "serial", Lock: goldenLock}, Values{}},
	"lockkey":     {Table{Name: "books", Ledger: true, Key: "id", Lock: goldenLock}, Values{}},
	"lockliteral": {Table{Name: "books", Lock: goldenLock}, Values{Editor: `\o'neill`, Literal: true}},
	"versionlock": {Table{Name: "books", FenceColumn: "fence_token", Serial: "serial", Lock: goldenLock}, Values{Serial: 5}},

	// variantOf plans these for a context with a serial.
	"version":        {Table{Name: "books", Serial: "serial"}, Values{Serial: 5}},
	"versionboth":    {Table{Name: "books", Serial: "serial", FenceColumn: "fence_token", Ledger: true}, Values{Serial: 5}},
	"versionkey":     {Table{Name: "books", Serial: "serial", FenceColumn: "fence_token", Key: "id"}, Values{Serial: 5}},
	"versionliteral": {Table{Name: "books", Serial: "serial"}, Values{Serial: 5, Literal: true}},

	"claim":        {Table{Name: "books", Key: "id", Claim: "attempt"}, Values{}},
	"claimtwo":     {Table{Name: "books", Key: "id", Claim: "attempt"}, Values{Tables: []TableValues{{Rows: []int{0, 1}}}}},
	"claimliteral": {Table{Name: "books", Key: "id", Claim: "attempt"}, Values{Literal: true}},

	// With these rulesets every statement is rendered with a token, even a statement that needs none. Their names end
	// in "held".
	"claimheld":      {Table{Name: "books", Key: "id", Claim: "attempt"}, Values{}},
	"claimtwoheld":   {Table{Name: "books", Key: "id", Claim: "attempt"}, Values{Tables: []TableValues{{Rows: []int{0, 1}}}}},
	"takeoverheld":   {Table{Name: "books", Key: "id", Claim: "attempt"}, Values{Literal: true}},
	"takesealedheld": {Table{Name: "books", Key: "id", Claim: "attempt", Sealed: true}, Values{}},

	"claimsealed":    {Table{Name: "books", Key: "id", Claim: "attempt", Sealed: true}, Values{}},
	"claimopen":      {Table{Name: "books", Key: "id", Claim: "attempt", Sealed: true}, Values{Tables: []TableValues{{Unsealed: true}}}},
	"takeoversealed": {Table{Name: "books", Key: "id", Claim: "attempt", Sealed: true}, Values{}},

	"claimof":        {Table{Name: "books", Ledger: true, ClaimOf: goldenClaims}, Values{}},
	"claimofkey":     {Table{Name: "books", Ledger: true, Key: "id", ClaimOf: goldenClaims}, Values{}},
	"claimoftwo":     {Table{Name: "books", Ledger: true, Key: "id", ClaimOf: goldenClaims}, Values{Tables: []TableValues{{Rows: []int{0, 1}}}}},
	"claimofliteral": {Table{Name: "books", Ledger: true, ClaimOf: goldenClaims}, Values{Literal: true}},
	"claimofserial":  {Table{Name: "books", Ledger: true, Serial: "serial", ClaimOf: goldenClaims}, Values{}},

	// variantOf plans these for a caller that takes rows over.
	"takeover": {Table{Name: "books", Key: "id", Claim: "attempt"}, Values{}},

	// otherTables registers the table orders with these rules, too.
	"pair":       {Table{Name: "books", FenceColumn: "fence_token"}, Values{}},
	"pairledger": {Table{Name: "books", Ledger: true}, Values{}},
}

// rulesetsOf returns the names of the rules that a dialect has.
func rulesetsOf(t testing.TB, d databases.Dialect) (names []string) {
	t.Helper()
	says, err := render.Guarded(d)
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range rulesets {
		if says.Guard.Unsealable == "" || !set.table.Sealed {
			names = append(names, name)
		}
	}
	return names
}

// otherTables returns the registered tables besides the ruleset's table.
func otherTables(rules string) []Table {
	if !strings.HasPrefix(rules, "pair") {
		return nil
	}
	orders := rulesets[rules].table
	orders.Name = "orders"
	return []Table{orders}
}

func isVersioned(rules string) bool { return strings.HasPrefix(rules, "version") }

// variantOf returns the variant of the plans that samples have under these rules.
func variantOf(rules string) (v guard.PlanKind) {
	if isVersioned(rules) {
		v |= guard.Versioned
	}
	if strings.HasPrefix(rules, "takeover") {
		v |= guard.TakesOver
	}
	return v
}

// byRow reports whether the rules include one whose guard needn't insert text in each statement.
func byRow(rules string) bool {
	t := rulesets[rules].table
	return t.Serial != "" || t.Claim != "" || t.Locks()
}

// mayInsertNothing reports whether a plan's guard may have nothing to insert.
func mayInsertNothing(p *Plan, rules string) bool {
	unfenced := slices.ContainsFunc(rulesets[rules].values.Tables, func(v TableValues) bool { return v.Unfenced })
	changes := slices.ContainsFunc(p.Targets, func(t render.Written) bool { return !t.Free })
	return byRow(rules) || unfenced || !changes
}

// booksKeys are the unique keys of the table that the samples write to.
var booksKeys = &session.UniqueKeys{Shape: "[]", Keys: [][]session.KeyColumn{
	{{Name: "isbn", Collation: "BINARY", NotNull: true, Default: "'none'"}, {Name: "Title", Collation: "NOCASE"}},
	{{Name: "id"}},
}}

// knowing returns the plan of a REPLACE for booksKeys; or without any, if their values don't show.
func knowing(p *Plan, v Values) *Plan {
	if p.Replaces() == nil {
		return p
	}
	known := p.Knowing(booksKeys)
	if _, _, err := known.Render(v); err == nil {
		return known
	}
	return p.Knowing(&session.UniqueKeys{Shape: "[]"})
}

// says returns the dialect of package render that writes the guards.
func says(d databases.Dialect) *render.Dialect {
	says, err := render.Guarded(d)
	if err != nil {
		panic(err)
	}
	return says
}

// rulesOf returns the rules of a plan's table.
func rulesOf(p *Plan, i int) *render.Registered { return p.Source.RulesOf(p.Tables[i]) }

// needsNone reports whether the default form has no token of a plan's table.
func needsNone(p *Plan, i int) bool {
	return rulesOf(p, i).Claim != "" &&
		!slices.ContainsFunc(p.Targets, func(t render.Written) bool { return t.Table == i && !t.Free })
}

// valuesOf returns the values for rendering a sample's plan.
func valuesOf(p *Plan, rules string) Values {
	v := rulesets[rules].values
	tokens := []Token{{Name: "books", Key: "42", Value: 7}, {Name: "o'neill", Key: `\43'`, Value: 8}}
	two, unfenced := v.Tables != nil && rules != "sealedopen", false
	second := 1 // the token of the second row
	if two {
		unfenced = v.Tables[0].Unfenced
		if rows := v.Tables[0].Rows; rows != nil {
			second = rows[1]
		}
	}
	v.Literal = v.Literal || !p.Params
	v.Tables = make([]TableValues, len(p.Tables))
	for i := range v.Tables {
		t := &v.Tables[i]
		t.Unsealed = rules == "sealedopen"
		switch {
		case !rulesOf(p, i).Fenced():
		case unfenced, needsNone(p, i) && !strings.HasSuffix(rules, "held"):
			t.Unfenced = true
		case two:
			t.Tokens = tokens
			for row := range keysOf(p) { // the second row has the second token, or none
				t.Rows = append(t.Rows, row%2&^(row/2)*second)
			}
		default:
			t.Tokens = tokens[i : i+1]
		}
	}
	return v
}

// A rendered statement is what [Plan.Render] returns.
type rendered struct {
	SQL  string
	Args []Arg
}

// renderedOf returns what a plan to guard is rendered to.
func renderedOf(t testing.TB, p *Plan, v Values) rendered {
	t.Helper()
	sql, args, err := knowing(p, v).Render(v)
	if err != nil {
		t.Fatal(err)
	}
	return rendered{sql, args}
}

// standard returns the text of a plan's default form.
func standard(t testing.TB, p *Plan) string {
	t.Helper()
	sql, _, err := p.Default()
	if err != nil {
		t.Fatal(err)
	}
	return sql
}

func (s *sample) plan(t testing.TB, d databases.Dialect, rules string) *Plan {
	t.Helper()
	return newRewriter(t, d, rules).PlanFor(s.sql, variantOf(rules))
}

// preparedRewriters holds a *Rewriter for each pair of a dialect and the name of a ruleset. New prepares
// the search for the tables' names, which takes longer than planning a statement.
var preparedRewriters sync.Map

// newRewriter returns a copy of the prepared rewriter for a ruleset. The copy has separate, empty caches, so that the
// copy plans every statement.
func newRewriter(t testing.TB, d databases.Dialect, rules string) *Rewriter {
	t.Helper()
	type key struct {
		d     databases.Dialect
		rules string
	}
	prepared, ok := preparedRewriters.Load(key{d, rules})
	if !ok {
		r, err := New(d, append([]Table{rulesets[rules].table}, otherTables(rules)...))
		if err != nil {
			t.Fatal(err)
		}
		prepared, _ = preparedRewriters.LoadOrStore(key{d, rules}, r)
	}
	r := *prepared.(*Rewriter)
	r.plans = newPlans()
	return &r
}

func goldenFile(d databases.Dialect) string {
	return filepath.Join("testdata", strings.ReplaceAll(strings.ToLower(d.String()), "postgresql", "postgres")+".golden")
}

// corpus returns the samples of a dialect.
func corpus(t testing.TB, d databases.Dialect) []sample {
	t.Helper()
	read, err := golden.Read(goldenFile(d))
	if err != nil {
		t.Fatal(err)
	}
	var samples []sample
	for _, s := range read {
		samples = append(samples, sample{s.Name, s.Rules, s.SQL})
	}
	return samples
}

// everySample takes the place of [random.Sample] in a test that is quick, or whose samples are few.
func everySample(all []sample) []sample { return all }

// eachSample runs f for every sample with every one of its rules, and reports whether all of them ran: -run and -skip
// leave some out.
func eachSample(t *testing.T, f func(t *testing.T, d databases.Dialect, s *sample, rules string)) (all bool) {
	return eachChosen(t, everySample, f)
}

// eachChosen is eachSample for the samples of each dialect that choose returns.
func eachChosen(t *testing.T, choose func([]sample) []sample, f func(t *testing.T, d databases.Dialect, s *sample, rules string)) (all bool) {
	started, ended := 0, 0
	for _, d := range guardedDialects(t) {
		for _, s := range choose(corpus(t, d)) {
			for _, rules := range s.rules {
				started++
				t.Run(d.String()+"/"+s.name+"/"+rules, func(t *testing.T) {
					f(t, d, &s, rules)
					ended++
				})
			}
		}
	}
	return ended == started
}

// visible returns a statement unchanged, or as a Go string if it contains invisible bytes.
func visible(s string) string {
	hidden := func(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }
	if !utf8.ValidString(s) || strings.Trim(s, " \n") != s || strings.ContainsFunc(s, hidden) || strings.Contains(s, "\n\n") ||
		strings.Contains(s, "\n=> ") || strings.HasPrefix(s, "go ") {
		return "go " + strconv.Quote(s)
	}
	return s
}

// golden returns a sample's text in the golden file.
func (s *sample) golden(t testing.TB, d databases.Dialect) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s", s.name)
	if !slices.Equal(s.rules, []string{"row"}) {
		fmt.Fprintf(&b, " {%s}", strings.Join(s.rules, " "))
	}
	fmt.Fprintf(&b, "\n%s\n", visible(s.sql))
	for _, rules := range s.rules {
		p := s.plan(t, d, rules)
		fmt.Fprintf(&b, "=> %s: %v", rules, p.Verdict)
		switch p.Verdict {
		case guard.Guard:
			r := renderedOf(t, p, valuesOf(p, rules))
			for i, a := range r.Args {
				what := fmt.Sprint([...]string{"value", "name", "key", "claim", "claims", "taken", "row", "number", "uuid", "ascii", "wide", "serial", "editor"}[a.Of.Field], " ", a.Of.Token)
				if a.Of.Table > 0 {
					what += fmt.Sprint(" of table ", a.Of.Table)
				}
				if a.Again > 0 {
					what = fmt.Sprint("again ", a.Again)
				}
				if a.Number != p.Inputs+i+1 {
					what += fmt.Sprint(" as ", a.Number)
				}
				b.WriteString(", " + what)
			}
			writeKeys := func(what string, keys []guard.KeyValue) {
				for i, k := range keys {
					fmt.Fprintf(&b, "%s{%q %d %q}", [...]string{what, ", "}[min(i, 1)], k.Name, k.Ordinal, k.Text)
				}
			}
			writeKeys("; keys ", keysOf(p))
			for _, t := range p.Targets {
				if t.Free {
					b.WriteString("; free")
				}
				if t.AssignsKey {
					b.WriteString("; assigns the key")
				}
				writeKeys(" ", t.NewKeys)
			}
			fmt.Fprintf(&b, "\n%s", visible(r.SQL))
		case guard.Refuse:
			fmt.Fprintf(&b, ", table %d, at %d: %s", p.Refusal.Table, p.Refusal.Offset, p.Refusal.Reason)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	for _, d := range guardedDialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			content, err := os.ReadFile(goldenFile(d))
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Split(string(content), "\n## ")
			var blocks []string
			for _, s := range corpus(t, d) {
				blocks = append(blocks, s.golden(t, d))
			}
			got := strings.Join(blocks, "\n")
			if *update {
				if err := os.WriteFile(goldenFile(d), []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for i, block := range strings.Split(got, "\n## ") {
				if i < len(want) && want[i] != block {
					t.Errorf("got:\n## %s\nwant:\n## %s", block, want[i])
				}
			}
			if !t.Failed() && got != string(content) {
				t.Error("the file isn't laid out as -update writes it")
			}
		})
	}
}

// TestGoldenNames checks that a sample can be found by its name.
func TestGoldenNames(t *testing.T) {
	for _, d := range guardedDialects(t) {
		seen := make(map[string]bool)
		for _, s := range corpus(t, d) {
			if seen[s.name] || !strings.Contains(s.name, ": ") || s.sql == "" {
				t.Errorf("%v: sample %q: want a name of its own with its hazard before a colon, and a statement", d, s.name)
			}
			seen[s.name] = true
		}
	}
}

// keysOf returns the keys of all of a plan's targets.
func keysOf(p *Plan) (keys []guard.KeyValue) {
	for _, t := range p.Targets {
		keys = append(keys, t.Keys...)
	}
	return keys
}
