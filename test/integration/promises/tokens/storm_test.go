package tokens_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// A witness is what a call has reported about a name, with the logical time before and after the call.
type witness struct {
	did           string
	before, after int64
	token         int64
	given         bool // issued to this call alone
	floor         bool // a lower bound: tokens issued later are above it
}

func (w witness) String() string {
	return fmt.Sprintf("%d-%d %s: %d", w.before, w.after, w.did, w.token)
}

// checkWitnesses fails the test in three cases: a token was issued twice; a call that began after a higher token was
// known issued, adopted or reported a lower one; such a call issued an equal one.
func checkWitnesses(t *testing.T, all []witness) {
	t.Helper()
	slices.SortFunc(all, func(a, b witness) int { return int(a.before - b.before) })
	twice := make(map[int64]witness)
	for i, later := range all {
		if later.given {
			if other, ok := twice[later.token]; ok {
				t.Errorf("given twice: %v, %v", other, later)
			}
			twice[later.token] = later
		}
		if later.floor {
			continue
		}
		for _, earlier := range all[:i] {
			if earlier.after < later.before &&
				(earlier.token > later.token || later.given && earlier.token == later.token) && (later.given || !earlier.floor) {
				t.Errorf("behind %v: %v", earlier, later)
			}
		}
	}
}

// A storm is callers that make random calls for some names at once.
type storm struct {
	setting harness.Setting
	names   []string
	clock   atomic.Int64
	highest []atomic.Int64 // by name

	mu   sync.Mutex
	seen [][]witness
}

// saw records a call's answer.
func (s *storm) saw(n int, w witness) {
	w.after = s.clock.Add(1)
	for {
		old := s.highest[n].Load()
		if w.floor || old >= w.token || s.highest[n].CompareAndSwap(old, w.token) {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[n] = append(s.seen[n], w)
}

// call makes one random call for a name.
func (s *storm) call(ctx context.Context, rnd *rand.Rand, store *tokens.Store, leases *lease.Leases, plain *sql.DB) error {
	n := rnd.IntN(len(s.names))
	name := s.names[n]
	w := witness{before: s.clock.Add(1), given: true}
	near := func() int64 { return max(1, s.highest[n].Load()+rnd.Int64N(8)-3) }
	switch roll := rnd.IntN(20); {
	case roll < 8:
		token, err := store.Issue(ctx, name)
		if err != nil {
			return fmt.Errorf("Issue: %w", err)
		}
		w.did, w.token = "Issue", token.Value
	case roll < 10:
		issued, err := store.IssueMany(ctx, s.names...)
		if err != nil {
			return fmt.Errorf("IssueMany: %w", err)
		}
		for n, token := range issued {
			s.saw(n, witness{did: "IssueMany", before: w.before, token: token.Value, given: true})
		}
		return nil
	case roll < 12:
		w = witness{did: "Adopt", before: w.before, token: near()}
		if err := store.Adopt(ctx, sqlfence.Token{Name: name, Value: w.token}); errors.Is(err, sqlfence.ErrStale) {
			return nil
		} else if err != nil {
			return fmt.Errorf("Adopt: %w", err)
		}
	case roll < 13:
		if err := store.Ensure(ctx, name); err != nil {
			return fmt.Errorf("Ensure: %w", err)
		}
		return nil
	case roll < 16:
		if _, err := store.Delete(ctx, s.names[:1+rnd.IntN(len(s.names))]...); err != nil {
			return fmt.Errorf("Delete: %w", err)
		}
		return nil
	case roll < 17:
		w = witness{did: "Check", before: w.before, token: near()}
		err := store.Check(ctx, sqlfence.Token{Name: name, Value: w.token})
		switch {
		case errors.Is(err, sqlfence.ErrStale), errors.Is(err, sqlfence.ErrNotIssued), errors.Is(err, sqlfence.ErrUnknownName):
			return nil
		case err != nil:
			return fmt.Errorf("Check: %w", err)
		}
	case roll < 18:
		l, err := leases.Acquire(ctx, name)
		if err != nil {
			return fmt.Errorf("Acquire: %w", err)
		}
		w.did, w.token = "lease", l.Token().Value
		defer l.Release(ctx)
	case roll < 19:
		w = witness{did: "a client", before: w.before, token: near()}
		query := fmt.Sprintf("INSERT INTO fencing_tokens (name, token) VALUES ('%s', %d)", name, w.token)
		switch rnd.IntN(3) {
		case 0:
			query = fmt.Sprintf("UPDATE fencing_tokens SET token = %d WHERE name = '%s'", w.token, name)
		case 1:
			query = fmt.Sprintf("DELETE FROM fencing_tokens WHERE name = '%s'", name)
		}
		result, err := plain.ExecContext(ctx, query)
		if err != nil || query[0] == 'D' {
			return nil
		}
		if changed, err := result.RowsAffected(); err != nil || changed == 0 {
			return err
		}
	case rnd.IntN(10) == 0:
		w = witness{did: "Repair", before: w.before, token: near(), floor: true}
		if _, err := store.Repair(ctx, w.token); err != nil {
			return fmt.Errorf("Repair: %w", err)
		}
		for other := range s.names {
			s.saw(other, w)
		}
		return nil
	default:
		return nil
	}
	s.saw(n, w)
	return nil
}

// Callers run all methods concurrently, at every isolation level, with and without shared statements. No token is
// issued twice, each issued token is above all earlier tokens of its name, and no stale token is adopted or reported as
// current.
func TestStorm(t *testing.T) {
	harness.EachStoreSetting(t, func(t *testing.T, set harness.Setting) {
		dsn := set.DSN(t)
		if set.Level != sql.LevelDefault {
			dsn = set.AtLevel(t, dsn, set.Level)
		}
		const callers, rounds = 16, 20
		setupStore(t, set.Raw(t, dsn))
		var stores [2]*tokens.Store
		var leases [2]*lease.Leases
		for i := range stores {
			db := set.Raw(t, dsn)
			db.SetMaxOpenConns(12)
			stores[i], leases[i] = harness.NewStore(t, db), harness.NewLeases(t, db)
		}
		plain := set.Raw(t, dsn)
		s := &storm{setting: set, names: []string{"jobs/1", "jobs/2", "jobs/3"}}
		s.highest, s.seen = make([]atomic.Int64, len(s.names)), make([][]witness, len(s.names))
		var wg sync.WaitGroup
		for c := range callers {
			rnd := rand.New(rand.NewPCG(rand.Uint64(), uint64(c)))
			wg.Go(func() {
				for range rounds {
					if err := s.call(t.Context(), rnd, stores[c%2], leases[c%2], plain); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		for n, all := range s.seen {
			t.Logf("%s: %d answers, up to %d", s.names[n], len(all), s.highest[n].Load())
			checkWitnesses(t, all)
		}
	})
}
