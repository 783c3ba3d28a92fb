package effects_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/test/random"
	"github.com/sqlfence/sqlfence/rewrite"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// ownDatabase is the name of a test's database, which is another one in each run.
var ownDatabase = regexp.MustCompile(`sqlfence_[a-z0-9]{26}`)

var updateEffects = flag.Bool("update-effects", false, "write which statements the bare drivers refuse into the golden files")

// The databases judge the guards, not a parser: the bare driver runs every possible statement of the corpus, and a
// fenced database runs it with a fresh and with a stale token, each in a transaction that is rolled back.
func TestEffectsOfGuardsAreJudgedByTheDatabase(t *testing.T) {
	goldens, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	corpus := map[sqlfence.Dialect][]effectSample{
		sqlfence.Postgres: effectCorpus(t, "postgres.golden"),
		sqlfence.SQLite:   effectCorpus(t, "sqlite.golden"),
		sqlfence.MySQL:    effectCorpus(t, "mysql.golden"),
	}
	t.Chdir(t.TempDir()) // ATTACH and VACUUM INTO create files
	eachBase(t, func(t *testing.T, b harness.Base) {
		t.Parallel()
		samples := slices.Clone(random.Sample(corpus[b.Dialect]))
		golden := filepath.Join(goldens, b.Name+".golden")
		l := newEffectLab(t, b)
		var refused []string
		run := 0
		for i := range samples {
			s := &samples[i]
			if s.plan(t, b, "row").Verdict == guard.Refuse && s.plan(t, b, "ledger").Verdict == guard.Refuse {
				continue
			}
			if !s.undone(b.Dialect) {
				continue
			}
			if s.plan(t, b, "ledger").MultiStatement > 0 { // only Exec runs several statements, and SQLite keeps some of them
				continue
			}
			run++
			if err := l.effects(t, s); err != nil {
				first, _, _ := strings.Cut(err.Error(), "\n")
				refused = append(refused, s.name+" | "+ownDatabase.ReplaceAllString(first, "test")+"\n")
			}
		}
		t.Logf("%d statements, %d of them refused by the bare driver; %d executions refused as stale", run, len(refused), l.stale)
		if l.stale < run {
			t.Error("too few executions are stale to prove anything")
		}
		if len(refused)*4 > run {
			t.Errorf("the bare driver refuses %d statements of %d; extend the schema", len(refused), run)
		}
		if *updateEffects {
			if err := os.WriteFile(golden, []byte(strings.Join(refused, "")), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		// Only the names are compared, because the databases' error texts differ among versions.
		for _, line := range refused {
			name, _, _ := strings.Cut(line, " | ")
			if !strings.Contains("\n"+string(want), "\n"+name+" | ") {
				t.Errorf("the bare driver refuses %s; extend the schema, or accept it with -update-effects", line)
			}
		}
	})
}

// foundRows is MySQL's driver with clientFoundRows: it counts the rows that an UPDATE finds. Without this option it
// counts the rows that the UPDATE changes, and the guard's assignment of the stored token is a change.
var foundRows = harness.Base{Name: "mysql-found-rows", DriverName: "mysql", Dialect: sqlfence.MySQL, AsWritten: true}

// eachBase runs test for the drivers whose databases accept the corpus unchanged.
func eachBase(t *testing.T, test func(t *testing.T, b harness.Base)) {
	t.Helper()
	for _, b := range append(slices.Clone(harness.Bases[:4]), foundRows) {
		if testing.Short() && !b.IsUsual() && b.Name != foundRows.Name {
			continue
		}
		t.Run(b.Name, func(t *testing.T) { test(t, b) })
	}
}

// effectRules are those of the corpus's rules that this test runs. The pairs are for two tables.
var effectRules = map[string][]sqlfence.Rule{
	"row":        {sqlfence.RowFence("fence_token")},
	"ledger":     {sqlfence.Ledger()},
	"both":       {sqlfence.RowFence("fence_token"), sqlfence.Ledger()},
	"pair":       {sqlfence.RowFence("fence_token")},
	"pairledger": {sqlfence.Ledger()},

	"claimofledger": {sqlfence.ClaimOf("jobs")}, // for each statement
}

// plan returns the plan of the statement under the named rules.
func (s *effectSample) plan(t testing.TB, b harness.Base, rules string) *rewrite.Plan {
	t.Helper()
	table := rewrite.Table{Name: "books", Ledger: rules != "row" && rules != "pair"}
	if !strings.HasSuffix(rules, "ledger") {
		table.FenceColumn = "fence_token"
	}
	if rules == "claimofledger" {
		table.ClaimOf = guard.Claims{Name: "jobs", Key: "id", Claim: "attempt"}
	}
	tables := []rewrite.Table{table}
	if strings.HasPrefix(rules, "pair") {
		table.Name = "orders"
		tables = append(tables, table)
	}
	r, err := rewrite.New(b.Dialect, tables)
	if err != nil {
		t.Fatal(err)
	}
	return r.Plan(s.sql)
}

// An effectLab is a database with the tables of the corpus.
type effectLab struct {
	harness.Base
	plain  *sql.DB
	fenced map[string]*sql.DB // by rules
	stale  int                // executions that were refused because their token is stale

	unwatched, watched []string // before and after statements that a test prepares and a seal would refuse
}

// newEffectLab returns a lab whose row fences have more rules.
func newEffectLab(t *testing.T, b harness.Base, more ...sqlfence.Rule) *effectLab {
	t.Helper()
	if b.Name == "mattn" {
		b.DriverName = mattnWithFunctions
	}
	dsn := b.DSN(t)
	l := &effectLab{Base: b, plain: b.Raw(t, dsn), fenced: make(map[string]*sql.DB)}
	for _, text := range effectSetup(b.Dialect) {
		harness.MustExec(t, l.plain, text)
	}
	for name, rules := range effectRules {
		rules = append(slices.Clip(rules), more...)
		if len(more) > 0 && strings.HasSuffix(name, "ledger") {
			continue
		}
		opts := []sqlfence.Option{sqlfence.WithTable("books", rules...)}
		if strings.HasPrefix(name, "pair") {
			opts = append(opts, sqlfence.WithTable("orders", rules...))
		}
		if name == "claimofledger" {
			opts = append(opts, sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")))
		}
		l.fenced[name] = b.Fenced(t, dsn, opts...)
	}
	return l
}

// effects runs a statement in all ways, and returns the bare driver's error.
func (l *effectLab) effects(t *testing.T, s *effectSample) error {
	t.Helper()
	ways := []string{"exec", "query"}
	var plain [2]effect
	for i, way := range ways {
		plain[i] = l.run(t.Context(), t, l.plain, s, way)
	}
	// Which rows a statement with random() reaches can't be predicted, so only its stale execution is judged.
	random := strings.Contains(s.sql, "random()")
	if random {
		plain[0].after, plain[1].after = plain[0].before, plain[1].before
	}
	for _, rules := range slices.Sorted(maps.Keys(l.fenced)) {
		p := s.plan(t, l.Base, rules)
		if p.Verdict == guard.Refuse || rules != "row" && rules != "ledger" && rules != "claimofledger" && !slices.Contains(s.rules, rules) {
			continue
		}
		for i, way := range ways {
			fresh := l.run(effectTokens(t, freshToken), t, l.fenced[rules], s, way)
			problem := compareEffects(plain[i], fresh, rules, p.Verdict)
			if problem != "" && !random {
				t.Errorf("%s, %s by %s, fresh: %s\n%s\n%s", s.name, rules, way, problem, s.sql, fresh.difference())
			}
			// These statements are left out. UPDATE OR IGNORE leaves rows alone that its condition selects: their guard
			// raises, and they get no stored token. A DELETE with LIMIT leaves rows alone, too, and MySQL's guard can't
			// know which.
			if rules == "row" && p.Verdict == guard.Guard && problem == "" && !random && !s.is("update or ignore") && !s.limitsDelete() {
				beside := l.run(effectTokens(t, freshToken), t, l.fenced[rules], s, way, fresh.raiseUntouched()...)
				if problem := compareEffects(plain[i], beside, rules, p.Verdict); problem != "" {
					t.Errorf("%s, %s by %s, beside rows with newer marks: %s\n%s\n%s", s.name, rules, way, problem, s.sql, beside.difference())
				}
			}
			stale := l.run(effectTokens(t, staleToken), t, l.fenced[rules], s, way)
			if errors.Is(stale.err, sqlfence.ErrStale) {
				l.stale++
			}
			if p.Verdict == guard.Pass {
				problem = compareEffects(plain[i], stale, rules, p.Verdict)
			} else {
				problem = judgeStale(plain[i], stale, rules)
			}
			if problem != "" {
				t.Errorf("%s, %s by %s, stale: %s\n%s\n%s", s.name, rules, way, problem, s.sql, stale.difference())
			}
		}
	}
	if plain[0].err != nil && plain[1].err != nil {
		return plain[0].err
	}
	return nil
}

func effectTokens(t *testing.T, value int64) context.Context {
	return sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: value}, sqlfence.Token{Name: "orders", Value: value},
		sqlfence.Token{Name: "jobs/42", Value: value})
}

// difference shows the beginning of what changed.
func (e effect) difference() string {
	var gone, come []effectRow
	for _, r := range e.before {
		if !slices.Contains(e.after, r) {
			gone = append(gone, r)
		}
	}
	for _, r := range e.after {
		if !slices.Contains(e.before, r) {
			come = append(come, r)
		}
	}
	return fmt.Sprintf("rows gone: %.600v\nrows come: %.600v\nerror: %v", gone, come, e.err)
}
