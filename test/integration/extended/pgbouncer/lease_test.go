//go:build linux

package pgbouncer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// eachLeasePooling runs test under each pooling that allows clients to share server connections.
func eachLeasePooling(t *testing.T, mode string, conns int, test func(t *testing.T, open func() *lease.Leases, direct *lease.Leases)) {
	t.Helper()
	harness.NeedPostgres(t)
	for _, p := range poolings() {
		if !p.shared {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			s := harness.NewShop(t, baseNamed(p.base), sqlfence.Ledger())
			direct := harness.NewLeases(t, s.Plain)
			through := behindPgbouncerIn(t, s.Source, mode, conns) + p.params
			test(t, func() *lease.Leases {
				leases, err := lease.New(s.Fenced(t, through, harness.Books(sqlfence.Ledger())), harness.Patient())
				if err != nil {
					t.Fatal(err)
				}
				return leases
			}, direct)
		})
	}
}

// In transaction and statement mode a pooler hands a session to other clients. So an ephemeral lease is refused, with
// one server connection or with several. Other leases are granted.
func TestEphemeralLeaseIsRefused(t *testing.T) {
	for _, mode := range []string{"transaction", "statement"} {
		for _, conns := range []int{1, pgbouncerConns} {
			t.Run(fmt.Sprint(mode, conns), func(t *testing.T) {
				eachLeasePooling(t, mode, conns, func(t *testing.T, open func() *lease.Leases, direct *lease.Leases) {
					leases := open()
					for range 2 {
						_, err := leases.Acquire(t.Context(), "k", lease.Ephemeral())
						harness.WantError(t, err, lease.ErrNoSessions)
					}
					election, err := lease.NewElection("k", lease.Callbacks{}, lease.Ephemeral())
					if err != nil {
						t.Fatal(err)
					}
					harness.WantError(t, election.Run(t.Context(), leases), lease.ErrNoSessions)
					l := harness.MustAcquire(t, leases, "k")
					harness.WantToken(t, l, "k", 1)
					harness.MustRelease(t, l)
				})
			})
		}
	}
}

// While other clients are working, an ephemeral lease is either refused, or granted and then safe from takeovers.
func TestEphemeralLeaseAmongOtherClients(t *testing.T) {
	eachLeasePooling(t, "transaction", pgbouncerConns, func(t *testing.T, open func() *lease.Leases, direct *lease.Leases) {
		others := open()
		ctx, stop := context.WithCancel(t.Context())
		var working sync.WaitGroup
		defer working.Wait()
		defer stop()
		for client := range 2 * pgbouncerConns {
			working.Go(func() {
				for ctx.Err() == nil {
					_, _, _ = others.Lookup(ctx, fmt.Sprint("other/", client))
				}
			})
		}
		rounds, acquired, taken := harness.Rounds(t, 60), 0, 0
		for round := range rounds {
			key := fmt.Sprint("k/", round)
			l, err := open().Acquire(t.Context(), key, lease.Ephemeral())
			if err != nil {
				harness.WantError(t, err, lease.ErrNoSessions)
				continue
			}
			acquired++
			for range 8 {
				if _, ok, err := others.TryAcquire(t.Context(), key); ok || err != nil {
					t.Errorf("%s was taken from its live holder: %v, %v", key, ok, err)
					taken++
					break
				}
			}
			harness.MustRelease(t, l)
		}
		t.Logf("of %d, %d acquired, %d taken away", rounds, acquired, taken)
	})
}

// In session mode a client keeps its session, so ephemeral leases work as without a pooler.
func TestEphemeralLeaseInAPoolOfSessions(t *testing.T) {
	eachLeasePooling(t, "session", 8, func(t *testing.T, open func() *lease.Leases, direct *lease.Leases) {
		l := harness.MustAcquire(t, open(), "k", lease.Ephemeral())
		if _, ok, err := direct.TryAcquire(t.Context(), "k"); ok || err != nil {
			t.Errorf("taken: %v, %v", ok, err)
		}
		harness.MustRelease(t, l)
	})
}
