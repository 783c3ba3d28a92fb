package fencepgx_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// lastSent is a tracer that records the last statement.
type lastSent struct {
	text string
	args []any
}

func (l *lastSent) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	l.text, l.args = data.SQL, slices.Clone(data.Args)
	return ctx
}

func (l *lastSent) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// priced opens a connection with the fence and one of pgx alone. It returns a guarded write on the first connection,
// and a write with the same text and arguments on the second.
func priced(t *testing.T, s *shop) (guarded, same func(context.Context) error) {
	t.Helper()
	const query = "UPDATE books SET price = $1 WHERE id = $2"
	ctx := harness.Holding(t, 9)
	sent := new(lastSent)
	seen := s.open(t, func(c *pgxpool.Config) { c.ConnConfig.Tracer = sent }, harness.Books(sqlfence.RowFence("fence_token")))
	if _, err := seen.Exec(ctx, query, 30, 1); err != nil {
		t.Fatal(err)
	}
	c, err := s.db.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Release)
	pool, err := pgxpool.New(ctx, s.Source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	plain, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plain.Release)
	guarded = func(ctx context.Context) error { _, err := c.Exec(ctx, query, 30, 1); return err }
	same = func(ctx context.Context) error { _, err := plain.Exec(ctx, sent.text, sent.args...); return err }
	return guarded, same
}

// allocs is the number of additional allocations of a guarded write: the list of its arguments, which a tracer may
// keep.
const allocs = 1

func TestAllocations(t *testing.T) {
	if harness.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	s := newShop(t, sqlfence.RowFence("fence_token"))
	guarded, same := priced(t, s)
	ctx := harness.Holding(t, 9)
	count := func(run func(context.Context) error) float64 {
		return testing.AllocsPerRun(100, func() {
			if err := run(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
	got, want := count(guarded), count(same)
	t.Logf("guarded %v, by pgx %v", got, want)
	if got > want+allocs {
		t.Errorf("%v allocations, by pgx alone %v, want at most %d more", got, want, allocs)
	}
}
