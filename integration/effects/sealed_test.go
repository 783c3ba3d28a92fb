package effects_test

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/rewrite"
	"github.com/sqlfence/sqlfence/schema"
)

// Whatever the form of a statement, a sealed table has the same rows and counts after it, the
// same marks, and refuses the same as one with row fences alone.
func TestEffectsSealed(t *testing.T) {
	corpora := map[sqlfence.Dialect][]effectSample{
		sqlfence.Postgres: effectCorpus(t, "postgres.golden"),
		sqlfence.SQLite:   effectCorpus(t, "sqlite.golden"),
	}
	for _, b := range harness.Bases[1:3] { // one of each database's
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			corpus := corpora[b.Dialect]
			open, sealed := newEffectLab(t, b), make(map[string]*effectLab)
			for _, rules := range []string{"row", "both", "pair"} {
				l := newEffectLab(t, b, sqlfence.Sealed())
				if err := schema.Seal(t.Context(), l.fenced[rules]); err != nil {
					t.Fatal(err)
				}
				l.unwatched, l.watched = unwatch[b.Dialect](t, l.fenced[rules])
				sealed[rules] = l
			}
			compared, applied := 0, 0
			for i := range corpus {
				c, a := compareSealed(t, open, sealed, &corpus[i])
				compared, applied = compared+c, applied+a
			}
			t.Logf("%d executions, of which %d were applied", compared, applied)
			if compared < 1000 || applied < compared/4 {
				t.Error("too few to prove anything")
			}
		})
	}
}

// unwatch returns what switches the seals off, and on again, in a transaction.
var unwatch = map[sqlfence.Dialect]func(*testing.T, *sql.DB) (off, on []string){
	sqlfence.Postgres: func(*testing.T, *sql.DB) (off, on []string) {
		return []string{"SET session_replication_role = replica"}, []string{"SET session_replication_role = origin"}
	},
	sqlfence.SQLite: func(t *testing.T, db *sql.DB) (off, on []string) {
		tables, err := sqlfence.Tables(db)
		if err != nil {
			t.Fatal(err)
		}
		unique := map[string][][]string{"books": {{"isbn"}}}
		for _, table := range tables {
			statements, err := schema.SealSQL(sqlfence.SQLite, table, unique[table.Name]...)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range statements {
				if strings.HasPrefix(s, "DROP TRIGGER") {
					off = append(off, s)
				}
			}
			on = append(on, statements...)
		}
		return off, on
	},
}

// compareSealed runs a statement on both labs, and returns how often, and how often it was applied.
func compareSealed(t *testing.T, open *effectLab, sealed map[string]*effectLab, s *effectSample) (compared, applied int) {
	if strings.Contains(s.sql, "random()") { // nobody can tell which rows those are
		return 0, 0
	}
	for rules, l := range sealed {
		p := s.plan(t, open.Base, rules)
		if p.Verdict != rewrite.Guard || p.Several > 0 || rules != "row" && !slices.Contains(s.rules, rules) {
			continue
		}
		for _, way := range []string{"exec", "query"} {
			for _, value := range []int64{freshToken, staleToken} {
				want := open.run(effectTokens(t, value), t, open.fenced[rules], s, way)
				got := l.run(effectTokens(t, value), t, l.fenced[rules], s, way)
				compared++
				if got.err == nil {
					applied++
				}
				if inTheWay(l.Base, want, got) {
					continue
				}
				if !slices.Equal(got.after, want.after) || got.result != want.result || !sameRefusal(got.err, want.err) {
					t.Errorf("%s, %s by %s with %d:\n%s\nsealed: %s\n%s\nelse: %s\n%s", s.name, rules, way, value, s.sql,
						got.result, got.difference(), want.result, want.difference())
				}
			}
		}
	}
	return compared, applied
}

// inTheWay reports whether a statement that says what an error undoes (OR ABORT, OR FAIL, OR ROLLBACK), or
// that is the UPDATE of an upsert, met a newer row that it would have left as it was. SQLite can't
// tell it from one that replaces the row, so that the seal's own constraint fails.
func inTheWay(b harness.Base, want, got effect) bool {
	gone := slices.ContainsFunc(want.before, func(r effectRow) bool { return !slices.Contains(want.after, r) })
	return b.Dialect == sqlfence.SQLite && got.err != nil && strings.HasSuffix(got.err.Error(), "sqlfence_seal.duplicate") && !gone
}

// sameRefusal compares errors, whose markers and texts may differ.
func sameRefusal(got, want error) bool {
	for _, kind := range []error{sqlfence.ErrStale, sqlfence.ErrNoFence, sqlfence.ErrUnguardable} {
		if errors.Is(got, kind) != errors.Is(want, kind) {
			return false
		}
	}
	if errors.Is(got, sqlfence.ErrStale) { // by the guard or by the seal
		return true
	}
	return (got == nil) == (want == nil) && harness.SQLState(got) == harness.SQLState(want)
}
