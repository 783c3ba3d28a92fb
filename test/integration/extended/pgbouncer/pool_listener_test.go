//go:build linux

package pgbouncer_test

import (
	"context"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// If a pooler hands sessions to other clients, a pool's listener must not report that it is listening, with one server
// connection or with several. If each client keeps its session, the listener must report it.
func TestPoolListenerProvesThatItHears(t *testing.T) {
	harness.NeedPostgres(t)
	for _, test := range []struct {
		mode  string
		conns int
		hears bool
	}{
		{"session", pgbouncerConns, true}, {"transaction", pgbouncerConns, false}, {"transaction", 1, false},
		{"statement", pgbouncerConns, false}, {"statement", 1, false},
	} {
		b := baseNamed("pgx")
		s := harness.NewShop(t, b, sqlfence.Ledger())
		db := b.Raw(t, behindPgbouncerIn(t, s.Source, test.mode, test.conns)+"&default_query_exec_mode=exec")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		heard := make(chan string, 99)
		go func() {
			defer close(ended)
			_ = lease.PoolListener(db).Listen(ctx, "sqlfence_leases", func(s string) { heard <- s })
		}()
		if test.hears {
			<-heard
			if _, err := db.Exec("SELECT pg_notify('sqlfence_leases', 'k')"); err != nil {
				t.Fatal(err)
			}
			if k := <-heard; k != "k" {
				t.Errorf("heard %q", k)
			}
		} else {
			<-ended
		}
		cancel()
		<-ended
		if len(heard) > 0 && !test.hears {
			t.Errorf("in mode %s with %d connections it claims to listen", test.mode, test.conns)
		}
	}
}
