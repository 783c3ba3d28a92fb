package soak_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ngrok/sqlmw"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

var soakFor = flag.Duration("soak", 0, "how long TestSoak takes for each base, fenced and raw; 0 for a fixed number of steps")

// Many goroutines use one pool for a long time, in all ways, with contexts that end at any time. Afterwards nothing is
// open in the base driver, and the pool is in the same state as after the same load without sqlfence.
func TestSoak(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := soakShop(t, b)
		raw, fenced := new(harness.Counter), new(harness.Counter)
		for _, run := range []soak{
			{name: "raw", base: b.Counting(t, s.Source, raw), counter: raw, texts: soakTexts(t, b)},
			{name: "fenced", base: b.Counting(t, s.Source, fenced), counter: fenced, texts: soakTexts(t, b), opts: []sqlfence.Option{
				sqlfence.WithDialect(b.Dialect), harness.Books(sqlfence.RowFence("fence_token")), sqlfence.WithTable("pens"),
			}},
		} {
			t.Run(run.name, func(t *testing.T) {
				run.steps, run.limit = 20, *soakFor
				for _, problem := range run.run(t) {
					t.Error(problem)
				}
			})
		}
	})
}

// soakShop returns a shop with rows for the mix.
func soakShop(t *testing.T, b harness.Base) *harness.Shop {
	t.Helper()
	s := harness.NewShop(t, b)
	s.Reset(t, 5)
	s.Raise(t, "pens", 5)
	s.Exec(t, "CREATE TABLE notes (id integer PRIMARY KEY, price integer)")
	for id := range 10 {
		s.Exec(t, "INSERT INTO notes VALUES ($1, 1)", id)
		s.Exec(t, "INSERT INTO pens VALUES ($1, 1)", id)
	}
	if err := s.Plain.Close(); err != nil { // its goroutines would be counted
		t.Fatal(err)
	}
	return s
}

const (
	soakers     = 64
	soakConns   = 8
	soakIdle    = 4
	soakSuccess = 8 // at least one of so many steps must succeed
)

// A soak is one run of the mix.
type soak struct {
	name    string
	base    driver.Connector
	counter *harness.Counter
	texts   []string
	opts    []sqlfence.Option // none: without sqlfence
	steps   int               // of each soaker
	limit   time.Duration     // replaces steps if it isn't 0
	lasting bool              // connections are never replaced, so that leaks on them stay
}

// run runs the mix, and returns the pool's problems afterwards.
func (s soak) run(t *testing.T) (problems []string) {
	t.Helper()
	s.counter.Quiet = true
	before := runtime.NumGoroutine()
	db := s.open(t)
	db.SetMaxOpenConns(soakConns)
	db.SetMaxIdleConns(soakIdle)
	if !s.lasting {
		// At first connections are replaced often, so that statements meet new connections. Later connections live on,
		// so that leaks on a connection stay visible.
		db.SetConnMaxLifetime(20 * time.Millisecond)
		defer time.AfterFunc(max(s.limit/2, 300*time.Millisecond), func() { db.SetConnMaxLifetime(0) }).Stop()
	}
	var shared []*sql.Stmt
	for _, text := range s.texts[:len(s.texts)-1] {
		stmt, err := db.PrepareContext(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		shared = append(shared, stmt)
	}
	start := time.Now()
	problems = s.mix(t, db, shared)
	for _, stmt := range shared {
		if err := stmt.Close(); err != nil {
			t.Logf("closing a shared statement: %v", err) // the connection may be broken
		}
	}
	problems = append(problems, s.left(db, before)...)
	t.Logf("in %v; %v", time.Since(start).Round(time.Millisecond), &s.counter.Tally)
	return problems
}

// mix runs the soakers' steps, and returns a problem if too few of them succeed.
func (s soak) mix(t *testing.T, db *sql.DB, shared []*sql.Stmt) (problems []string) {
	var done, succeeded, stale atomic.Int64
	start := time.Now()
	var wg sync.WaitGroup
	for n := range uint64(soakers) {
		wg.Go(func() {
			me := &soaker{rand.New(rand.NewPCG(7, n)), db, s.texts, shared}
			for i := 0; s.limit == 0 && i < s.steps || time.Since(start) < s.limit; i++ {
				err := me.step(t.Context())
				done.Add(1)
				if err == nil {
					succeeded.Add(1)
				}
				if errors.Is(err, sqlfence.ErrStale) {
					stale.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if succeeded.Load()*soakSuccess < done.Load() {
		problems = append(problems, fmt.Sprintf("%d of %d steps succeeded", succeeded.Load(), done.Load()))
	}
	if fenced := s.opts != nil; fenced != (stale.Load() > 0) {
		problems = append(problems, fmt.Sprintf("%d steps were stale", stale.Load()))
	}
	t.Logf("%d steps, %d succeeded, %d stale, %d waits", done.Load(), succeeded.Load(), stale.Load(), db.Stats().WaitCount)
	return problems
}

// left closes the pool, and returns what is still open before and after Close. goroutines is the number of goroutines
// before the pool was opened.
func (s soak) left(db *sql.DB, goroutines int) (problems []string) {
	fail := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	var leaks []string
	settled := func() bool {
		stats := db.Stats()
		leaks = s.counter.Tally.Leaks(stats.OpenConnections)
		if stats.InUse != 0 {
			leaks = append(leaks, fmt.Sprintf("%d connections in use", stats.InUse))
		}
		return len(leaks) == 0
	}
	if !within(settled) {
		fail("before Close: %q", leaks)
	}
	stats := db.Stats()
	if stats.Idle > soakIdle || stats.OpenConnections > soakConns {
		fail("pool: %+v", stats)
	}
	if err := db.Close(); err != nil {
		fail("close: %v", err)
	}
	if !within(func() bool { leaks = s.counter.Tally.Leaks(0); return len(leaks) == 0 }) {
		fail("after Close: %q", leaks)
	}
	if !within(func() bool { return runtime.NumGoroutine() <= goroutines }) {
		fail("%d goroutines, before it were %d", runtime.NumGoroutine(), goroutines)
	}
	return problems
}

func (s soak) open(t *testing.T) *sql.DB {
	t.Helper()
	if s.opts == nil {
		return sql.OpenDB(s.base)
	}
	db, err := sqlfence.OpenDB(s.base, s.opts...)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// soakPatience is how long a soak waits until everything is closed.
var soakPatience = harness.Patience

func within(seen func() bool) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(soakPatience); !seen(); <-tick.C {
		if time.Now().After(limit) {
			return false
		}
	}
	return true
}

// The soak must report each kind of leak of a driver, and no leak of a driver without one.
func TestSoakSeesLeaks(t *testing.T) {
	b := harness.Bases[slices.IndexFunc(harness.Bases, func(b harness.Base) bool { return b.Name == "mattn" })]
	for _, what := range []string{"nothing", "connections", "statements", "rows", "transactions", "goroutines"} {
		t.Run(what, func(t *testing.T) {
			if what != "nothing" {
				defer func(d time.Duration) { soakPatience = d }(soakPatience)
				soakPatience = 100 * time.Millisecond // the wait always runs into its limit
			}
			s, c := soakShop(t, b), new(harness.Counter)
			stop := make(chan struct{})
			defer close(stop)
			leak := leaky{what: what, stop: stop}
			d := sqlmw.Driver(b.Counting(t, s.Source, c).Counting, leak)
			run := soak{name: what, base: leakyConnector{harness.HidingConnector{Hiding: harness.Hiding{Name: "x", Inner: d}, DSN: s.Source}, leak}, counter: c, texts: soakTexts(t, b), steps: 3, lasting: true}
			problems := run.run(t)
			if what == "nothing" && len(problems) > 0 {
				t.Errorf("unfounded: %q", problems)
			}
			if what != "nothing" && !strings.Contains(fmt.Sprint(problems), what) {
				t.Errorf("not seen; only %q", problems)
			}
		})
	}
}

// A leaky driver doesn't close objects of one kind. The leaked objects are rolled back or reset, so that other
// connections aren't blocked.
type leaky struct {
	sqlmw.NullInterceptor
	what string
	stop chan struct{}
}

func (l leaky) StmtClose(_ context.Context, s driver.Stmt) error {
	if l.what == "statements" {
		return nil
	}
	return s.Close()
}

func (l leaky) RowsClose(_ context.Context, rows driver.Rows) error {
	switch l.what {
	case "rows":
		return rows.(harness.TalliedRows).Rows.Close() // isn't counted as closed
	case "goroutines":
		go func() { <-l.stop }()
	}
	return rows.Close()
}

func (l leaky) TxRollback(_ context.Context, tx driver.Tx) error {
	if l.what == "transactions" {
		return tx.(harness.TalliedTx).Tx.Rollback() // isn't counted as ended
	}
	return tx.Rollback()
}

type leakyConnector struct {
	harness.HidingConnector
	leaky
}

func (c leakyConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if c.what == "connections" {
		if _, err := c.HidingConnector.Connect(ctx); err != nil {
			return nil, err
		}
	}
	return c.HidingConnector.Connect(ctx)
}
