package claims_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A resultsModel is a model of a queue and its results.
type resultsModel struct {
	attempts map[int64]int64 // the claims of the existing jobs
	results  []modelResult
}

type modelResult struct{ job, part int64 }

// refusal returns the error that a write to results of the jobs reached must have with these claims. claims are jobs
// and generations in turn.
func (m *resultsModel) refusal(claims []int64, reached []int64, insert bool) error {
	held := func(job int64) bool {
		for i := 0; i < len(claims); i += 2 {
			if claims[i] == job {
				return true
			}
		}
		return false
	}
	outside := slices.ContainsFunc(reached, func(job int64) bool { return !held(job) })
	switch {
	case len(claims) == 0:
		return sqlfence.ErrNoFence
	case insert && outside: // it isn't sent
		return sqlfence.ErrOutOfScope
	}
	for i := 0; i < len(claims); i += 2 {
		if current, there := m.attempts[claims[i]]; !there || current != claims[i+1] {
			return sqlfence.ErrStale
		}
	}
	if outside {
		return sqlfence.ErrOutOfScope
	}
	return nil
}

// takeover returns the error that a takeover of the job must have: the context's claim of this job is compared.
func (m *resultsModel) takeover(claims []int64, job int64) error {
	current, there := m.attempts[job]
	for i := 0; there && i < len(claims); i += 2 {
		switch {
		case claims[i] != job:
		case claims[i+1] < current:
			return sqlfence.ErrStale
		case claims[i+1] > current:
			return sqlfence.ErrNotIssued
		}
	}
	return nil
}

// Random statements on a queue and its results have the effect that the model predicts.
func TestClaimOfModel(t *testing.T) {
	const jobs, steps = 4, 400
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for seed := range uint64(2) {
			keys := keyTypes[0]
			db, plain := withResults(t, b, keys)
			r := rand.New(rand.NewPCG(seed, 26))
			m := &resultsModel{attempts: map[int64]int64{1: 1, 2: 2, 3: 3, 4: 0}}
			for job := int64(1); job <= 3; job++ {
				m.results = append(m.results, modelResult{job, 1})
			}
			pick := func() int64 { return 1 + r.Int64N(jobs) }
			for step := range int64(steps) {
				var claims []int64
				for n := r.IntN(3); len(claims) < 2*n; {
					job := pick()
					if len(claims) > 0 && claims[0] == job {
						continue
					}
					generation := m.attempts[job]
					if r.IntN(4) == 0 {
						generation += r.Int64N(3) - 1
					}
					claims = append(claims, job, max(generation, 1))
				}
				ctx := holding(t, keys, claims...)
				a, other := pick(), pick()
				var query string
				var args []any
				var want error
				nothing, apply := false, func() {}
				switch r.IntN(8) {
				case 0, 1:
					query, args = "UPDATE jobs SET attempt = COALESCE(attempt, 0) + 1 WHERE id = $1", []any{a}
					want = m.takeover(claims, a)
					apply = func() {
						if _, there := m.attempts[a]; there {
							m.attempts[a]++
						}
					}
				case 2: // a finished job is removed, and its id comes back
					ctx = sqlfence.Bypass(t.Context(), "the model")
					query, args = "DELETE FROM jobs WHERE id = $1", []any{a}
					apply = func() { delete(m.attempts, a) }
					if _, there := m.attempts[a]; !there {
						query = "INSERT INTO jobs (id, attempt) VALUES ($1, 0)"
						apply = func() { m.attempts[a] = 0 }
					}
				case 3, 4:
					query, args = "INSERT INTO results (job_id, part, note) VALUES ($1, $2, 'new')", []any{a, 10 + step}
					added := []modelResult{{a, 10 + step}}
					reached := []int64{a}
					if r.IntN(2) == 0 {
						query, args = query+", ($3, $4, 'new')", append(args, other, 1000+step)
						added, reached = append(added, modelResult{other, 1000 + step}), append(reached, other)
					}
					want = m.refusal(claims, reached, true)
					apply = func() { m.results = append(m.results, added...) }
				case 5, 6:
					query, args = "UPDATE results SET note = 'upd' WHERE job_id IN ($1, $2)", []any{a, other}
					reached := m.jobsOf(a, other)
					nothing, want = len(reached) == 0, m.refusal(claims, reached, false)
				default:
					query, args = "DELETE FROM results WHERE job_id = $1 AND part > $2", []any{a, other * 10}
					inside := func(x modelResult) bool { return x.job == a && x.part > other*10 }
					var reached []int64
					if slices.ContainsFunc(m.results, inside) {
						reached = []int64{a}
					}
					nothing, want = len(reached) == 0, m.refusal(claims, reached, false)
					apply = func() { m.results = slices.DeleteFunc(m.results, inside) }
				}
				if r.IntN(2) == 0 { // the guard's values are constants then
					for i := len(args); i > 0; i-- {
						query = strings.ReplaceAll(query, fmt.Sprint("$", i), fmt.Sprint(args[i-1]))
					}
					args = nil
				}
				_, err := db.ExecContext(ctx, query, args...)
				if nothing && want == sqlfence.ErrStale && err == nil && b.Dialect == sqlfence.SQLite {
					want = nil // an index shows that no row exists, before the claim is checked
				}
				if !errors.Is(err, want) {
					t.Fatalf("seed %d, step %d: %s %v with %v, jobs %v: %v, want %v", seed, step, query, args, claims, m.attempts, err, want)
				}
				if want == nil {
					apply()
				}
			}
			var rows int
			if err := plain.QueryRowContext(t.Context(), "SELECT count(*) FROM results").Scan(&rows); err != nil || rows != len(m.results) {
				t.Errorf("seed %d: %d results, %v, want %d", seed, rows, err, len(m.results))
			}
		}
	})
}

// jobsOf returns the given jobs that have results.
func (m *resultsModel) jobsOf(jobs ...int64) (found []int64) {
	for _, x := range m.results {
		if slices.Contains(jobs, x.job) {
			found = append(found, x.job)
		}
	}
	return found
}

// While workers take jobs from each other and write results, no result of an older claim is added after the takeover
// that ended the claim. So a takeover counts all results that the older claim will ever have.
func TestClaimOfStorm(t *testing.T) {
	const jobs, workers, rounds = 3, 4, 60
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		db, plain := withResults(t, b, keyTypes[0])
		type takeover struct{ job, generation, before int64 }
		var mu sync.Mutex
		var takeovers []takeover
		late, landed := 0, 0
		count := func(ctx context.Context, q queryer, job, generation int64) (n int64, err error) {
			err = q.QueryRowContext(ctx, "SELECT count(*) FROM results WHERE job_id = $1 AND part < $2", job, generation*1_000_000).Scan(&n)
			return n, err
		}
		met := func() bool { // sequential workers would lose no job
			mu.Lock()
			defer mu.Unlock()
			return late > 0 && landed > 0
		}
		var all sync.WaitGroup
		for w := range int64(workers) {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), 27))
				held := map[int64]int64{}
				for round := int64(0); round < rounds || !met(); round++ {
					job := 1 + r.Int64N(jobs)
					if generation := held[job]; generation > 0 && r.IntN(3) > 0 {
						err := sqlfence.Retry(t.Context(), db, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
							token, _ := sqlfence.ClaimToken("jobs", job, generation)
							_, err := tx.ExecContext(sqlfence.WithFence(ctx, token), "INSERT INTO results (job_id, part, note) VALUES ($1, $2, 'new')", job, generation*1_000_000+w*1000+round)
							return err
						})
						mu.Lock()
						switch {
						case errors.Is(err, sqlfence.ErrStale):
							late++
							delete(held, job)
						case err == nil:
							landed++
						case !harness.RefusedByIsolation(err):
							t.Errorf("a result: %v", err)
						}
						mu.Unlock()
						continue
					}
					var took takeover
					err := sqlfence.Retry(t.Context(), db, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
						if _, err := tx.ExecContext(ctx, "UPDATE jobs SET attempt = attempt + 1 WHERE id = $1", job); err != nil {
							return err
						}
						took = takeover{job: job}
						if err := tx.QueryRowContext(ctx, "SELECT attempt FROM jobs WHERE id = $1", job).Scan(&took.generation); err != nil {
							return err
						}
						n, err := count(ctx, tx, job, took.generation)
						took.before = n
						return err
					})
					switch {
					case err == nil:
						held[job] = took.generation
						mu.Lock()
						takeovers = append(takeovers, took)
						mu.Unlock()
					case !harness.RefusedByIsolation(err):
						t.Errorf("a takeover: %v", err)
					}
				}
			})
		}
		all.Wait()
		for _, took := range takeovers {
			if n, err := count(t.Context(), plain, took.job, took.generation); err != nil || n != took.before {
				t.Errorf("%+v: %d results now, %v", took, n, err)
			}
		}
		if late == 0 || landed == 0 || len(takeovers) == 0 {
			t.Errorf("%d late writes, %d that landed, %d takeovers", late, landed, len(takeovers))
		}
		t.Logf("%d takeovers, %d results, %d late", len(takeovers), landed, late)
	})
}

// A queryer is a database or a transaction.
type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}
