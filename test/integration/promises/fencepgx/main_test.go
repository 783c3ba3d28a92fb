package fencepgx_test

import (
	"context"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// A shop is a harness.Shop with a fenced pool of pgx.
type shop struct {
	*harness.Shop
	rule  sqlfence.Rule
	db    *fencepgx.DB
	turns *atomic.Int64 // how often a connection has written after reading: its round trips
}

// newShop opens a shop with a rule on the books.
func newShop(t *testing.T, rule sqlfence.Rule, opts ...sqlfence.Option) *shop {
	t.Helper()
	return newShopBy(t, rule, func(*pgxpool.Config) {}, opts...)
}

// newShopBy is newShop with a configuration of the pool.
func newShopBy(t *testing.T, rule sqlfence.Rule, configure func(*pgxpool.Config), opts ...sqlfence.Option) *shop {
	t.Helper()
	harness.NeedPostgres(t)
	b := harness.Bases[slices.IndexFunc(harness.Bases, func(b harness.Base) bool { return b.Name == "pgx" })]
	s := &shop{Shop: harness.NewShop(t, b, rule), rule: rule, turns: new(atomic.Int64)}
	s.db = s.open(t, configure, append(opts, harness.Books(rule))...)
	s.Reset(t, 9)
	return s
}

// open opens the shop's database again.
func (s *shop) open(t *testing.T, configure func(*pgxpool.Config), opts ...sqlfence.Option) *fencepgx.DB {
	t.Helper()
	config, err := pgxpool.ParseConfig(s.Source)
	if err != nil {
		t.Fatal(err)
	}
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &turning{Conn: c, turns: s.turns}, nil
	}
	configure(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	db, err := fencepgx.New(pool, opts...)
	if err != nil {
		pool.Close()
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// A turning connection counts the changes from reading to writing.
type turning struct {
	net.Conn
	turns *atomic.Int64
	wrote atomic.Bool
}

// NetConn returns the connection itself, as that of a *tls.Conn does.
func (c *turning) NetConn() net.Conn { return c.Conn }

func (c *turning) Write(p []byte) (int, error) {
	if !c.wrote.Swap(true) {
		c.turns.Add(1)
	}
	return c.Conn.Write(p)
}

func (c *turning) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.wrote.Store(false)
	}
	return n, err
}

// onFences runs a test with each of the rules that compare tokens.
func onFences(t *testing.T, test func(t *testing.T, s *shop), opts ...sqlfence.Option) {
	t.Helper()
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) { test(t, newShop(t, fence.Rule, opts...)) })
	}
}

// staleThenFresh runs a write that sets the price of book 1 to 30, with a stale token and with a current one.
func (s *shop) staleThenFresh(t *testing.T, name string, run func(ctx context.Context) error) {
	t.Helper()
	s.Reset(t, 9)
	unchanged := s.Unchanged(t)
	if err := run(harness.Holding(t, 8)); err == nil {
		t.Errorf("%s: a stale token was let pass", name)
	} else {
		harness.WantStale(t, err, 8, 9)
	}
	unchanged()
	harness.WantOnly(t, run(t.Context()), sqlfence.ErrNoFence)
	unchanged()
	if err := run(harness.Holding(t, 9)); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if got := s.State(t, true); got != "1:30@9 2:10@9 3:10@9" {
		t.Errorf("%s left %s", name, got)
	}
}

// givenBack waits until the pool has all of its connections. The pool destroys a broken connection in a separate
// goroutine, so the connection may still count as acquired after the call that released it.
func (s *shop) givenBack(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "all connections given back", func() bool { return s.db.Stat().AcquiredConns() == 0 })
}
