//go:build linux

package ha_test

import (
	"flag"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

var rounds = flag.Int("rounds", 0, "how often each failure happens in each mode; without it one does")

// api is the version of etcd's API that Patroni uses. Under version 3, a paused leader of Patroni before 3.0.3 takes
// the leadership back from its successor.
var api = flag.String("api", "etcd", "how Patroni asks etcd: etcd or etcd3")

// forPage is the number of failovers that each mode must have before the run is written into docs/data/ha.md.
const forPage = 20

// modes are Patroni's replication modes. Only synchronous replication keeps every acknowledged write.
var modes = []struct {
	name        string
	synchronous bool
}{{"synchronous", true}, {"asynchronous", false}}

// one is the only failure in a run without rounds, because it distinguishes the modes: asynchronous replication loses
// commits, and synchronous replication doesn't.
const one = "crash behind a lag"

// After failovers of each kind, no stale write has overwritten a newer write that still exists, and tokens have
// increased. With asynchronous replication one exception is permitted: the previous primary may issue lower tokens for
// a while.
func TestFailovers(t *testing.T) {
	if testing.Short() {
		t.Skip("two clusters that fail over take minutes")
	}
	results := make([]*result, len(modes))
	var ran harness.Subtests
	t.Run("modes", func(t *testing.T) {
		for i, mode := range modes {
			ran.Run(t, mode.name, func(t *testing.T) {
				t.Parallel()
				results[i] = failOver(t, mode.synchronous, plan())
			})
		}
	})
	ran.NeedAll(t)
	if !t.Failed() && *rounds*len(failures) >= forPage {
		harness.WriteSection(t, "../../../../docs/data/ha.md", "run", describe(t, results))
	}
}

// plan returns the failures in the order in which they happen.
func plan() (planned []failure) {
	for range max(*rounds, 1) {
		for _, f := range failures {
			if *rounds > 0 || f.name == one {
				planned = append(planned, f)
			}
		}
	}
	return planned
}

// A result is the outcome of a mode's run.
type result struct {
	verdict   *verdict
	failovers []failover
	server    string // PostgreSQL's version
}

func failOver(t *testing.T, synchronous bool, planned []failure) *result {
	c := start(t, synchronous)
	prepare(t, c)
	r := &run{cluster: c, trail: newTrail()}
	stop := clients(t, c, r.trail)
	defer stop()
	for _, f := range planned {
		r.fail(t, f)
	}
	r.await(t, "a write of each client that landed or was refused", func() bool { return r.trail.decided() == len(tables)*perTable })
	stop()
	c.settle(t)
	db := open(t, "pgx", c.dsn(0))
	v := judge(t, r.trail, db)
	for text, n := range r.trail.errs {
		t.Logf("%6d times: %s", n, text)
	}
	t.Logf("%+v", *v)
	if len(r.failovers) != len(planned) {
		t.Errorf("%d failovers, want %d", len(r.failovers), len(planned))
	}
	check(t, v, synchronous)
	out := &result{verdict: v, failovers: r.failovers}
	if err := db.QueryRow("SELECT split_part(current_setting('server_version'), ' ', 1)").Scan(&out.server); err != nil {
		t.Fatal(err)
	}
	return out
}

func check(t *testing.T, v *verdict, synchronous bool) {
	t.Helper()
	for what, n := range map[string]int{
		"stale writes over newer ones": v.guarded(), "tokens given twice": v.twice,
		"tokens that fell": v.fell, "writes that landed though they had failed": v.forbidden,
	} {
		if n > 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	if synchronous {
		for what, n := range map[string]int{
			"tokens that fell": v.behind, "stale writes acknowledged": v.acknowledged, "acknowledged writes lost": v.lost,
		} {
			if n > 0 {
				t.Errorf("synchronous: %d %s", n, what)
			}
		}
	}
	if v.over["plain"] == 0 {
		t.Error("without sqlfence no stale write stands over a newer one: the judge sees nothing")
	}
	if v.refused < 10 || v.tokens < 20 {
		t.Errorf("only %d tokens and %d refusals: nothing contended", v.tokens, v.refused)
	}
}
