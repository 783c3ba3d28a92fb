package effects_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/test/random"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// After a statement of any form a sealed table has the same rows, counts and stored tokens as a table with row fences
// alone, and the same statements are refused.
func TestEffectsSealed(t *testing.T) {
	b := harness.Bases[1]
	corpus := random.Sample(effectCorpus(t, "postgres.golden"))
	open, sealed := newEffectLab(t, b), make(map[string]*effectLab)
	for _, rules := range []string{"row", "both", "pair"} {
		l := newEffectLab(t, b, sqlfence.Sealed())
		if err := schema.Seal(t.Context(), l.fenced[rules]); err != nil {
			t.Fatal(err)
		}
		harness.MustExec(t, l.plain, notAlways)
		l.unwatched, l.watched = []string{"SET session_replication_role = replica"}, []string{"SET session_replication_role = origin"}
		sealed[rules] = l
	}
	compared, applied := 0, 0
	for i := range corpus {
		c, a := compareSealed(t, open, sealed, &corpus[i])
		compared, applied = compared+c, applied+a
	}
	t.Logf("%d executions, of which %d were applied", compared, applied)
	if compared < len(corpus)/3 || applied < compared/4 {
		t.Error("too few to prove anything")
	}
}

// notAlways lets a replica's writes pass without firing a seal's triggers.
const notAlways = `DO $$
DECLARE g record;
BEGIN
	FOR g IN SELECT t.tgrelid::regclass AS part, t.tgname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
		WHERE t.tgname LIKE '~sqlfence%' AND t.tgparentid = 0 AND c.relnamespace = current_schema()::regnamespace LOOP
		EXECUTE format('ALTER TABLE %s ENABLE TRIGGER %I', g.part, g.tgname);
	END LOOP;
END$$`

// compareSealed runs a statement on both labs. It returns how many executions it compared, and how many succeeded.
func compareSealed(t *testing.T, open *effectLab, sealed map[string]*effectLab, s *effectSample) (compared, applied int) {
	if strings.Contains(s.sql, "random()") { // it reaches other rows each time
		return 0, 0
	}
	for rules, l := range sealed {
		p := s.plan(t, open.Base, rules)
		if p.Verdict != guard.Guard || p.MultiStatement > 0 || rules != "row" && !slices.Contains(s.rules, rules) {
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
				if !slices.Equal(got.after, want.after) || got.result != want.result || !sameRefusal(got.err, want.err) {
					t.Errorf("%s, %s by %s with %d:\n%s\nsealed: %s\n%s\nelse: %s\n%s", s.name, rules, way, value, s.sql,
						got.result, got.difference(), want.result, want.difference())
				}
			}
		}
	}
	return compared, applied
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
