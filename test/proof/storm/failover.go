//go:build linux

package storm

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A Pair is a server and its standby.
type Pair struct {
	*Target
	primary, standby *harness.Server
	t                *testing.T
}

// Postgreses starts a server that has an asynchronous standby as soon as Follow is called.
func Postgreses(t *testing.T) *Pair {
	t.Helper()
	return pairOf(t, durable)
}

// Synchronous starts a server with a synchronous standby, which is promoted again and again. While a commit waits for
// the standby, no fault ends its session and no request gives up, because PostgreSQL would then show other sessions a
// commit that no standby has.
func Synchronous(t *testing.T) *Target {
	t.Helper()
	p := pairOf(t, durable+"synchronous_standby_names = '*'\n")
	p.Follow()
	p.before, p.Patient, p.without = " with a synchronous standby", true, []string{"session ended", "server killed"}
	p.faults = []Fault{{"standby promoted", 6 * time.Second, func(*Storm, *rand.Rand) {
		p.Promote()
		p.Follow()
	}}}
	return p.Target
}

func pairOf(t *testing.T, conf string) *Pair {
	t.Helper()
	p := &Pair{primary: harness.NewServer(t, conf), standby: harness.NewServer(t, conf), t: t}
	p.primary.Start(t)
	p.Target = onServer(t, p.primary)
	return p
}

// Follow makes the standby a copy of the server that streams from it.
func (p *Pair) Follow() { p.standby.Follow(p.t, p.primary) }

// CutOff has the standby get nothing more.
func (p *Pair) CutOff() { p.standby.CutOff(p.t, p.primary) }

// Promote kills the server. The standby replaces the server at the same address, without the commits that it has
// missed.
func (p *Pair) Promote() {
	t := p.t
	t.Helper()
	p.primary.Kill(t)
	p.standby.Stop(t)
	p.standby.Port = p.primary.Port
	p.standby.StartAgain(t)
	p.standby.Promote(t)
	p.primary, p.standby = p.standby, p.primary
}
