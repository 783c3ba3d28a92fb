//go:build linux

package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
)

// A Storm is a fence's processes, the requests to the processes, and the faults meanwhile.
type Storm struct {
	Target    *Target
	Program   fence.Program
	Processes int
	Tables    []history.Table
	Ledger    string // the table of tokens that the fence keeps, as history.Install takes it
	Mix       func(l *Lane) fence.Request
	Faults    []Fault
	Seed      uint64
	TTL       time.Duration // of leases
	Round     time.Duration // how long one lasts

	Pool Pool // tokens that the lanes know

	t      *testing.T
	began  time.Time
	id     atomic.Int64
	last   int64 // number of the last event
	slots  []*slot
	ending atomic.Bool
	counts map[string]int // faults
	odd    oddities
	wrong  oddities
}

// silence is how long a fence may take for an answer, also through a fault.
const silence = harness.Patience

// Open makes the fence create its tables, and installs the recording triggers.
func (s *Storm) Open(t *testing.T) {
	t.Helper()
	s.t, s.began, s.counts = t, time.Now(), make(map[string]int)
	p, err := s.Program.Start(s.opening(0, true))
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if err := history.Install(t.Context(), s.Target.Admin, s.Target.Database, s.Tables, s.Ledger); err != nil {
		t.Fatal(err)
	}
}

func (s *Storm) opening(process int, setup bool) fence.Request {
	r := fence.Request{
		ID: s.id.Add(1), Do: fence.Open, Database: s.Target.Database, DSN: s.Target.DSN, Process: process + 1, Setup: setup,
		TTL: s.TTL.Milliseconds(),
	}
	if process%2 == 1 {
		r.Clock = s.TTL.Milliseconds() * 3 / 2 // a clock that is ahead by more than a lease
	}
	return r
}

// A Round is what happened for some time.
type Round struct {
	History *history.History
	Faults  map[string]int
	Took    time.Duration
	Odd     map[string]int // answers that a fence under no fault shouldn't give, by their texts
	Wrong   map[string]int // what makes the round worth nothing: processes that don't run, or don't answer
}

// Run runs one round. Run returns after all requests and transactions have ended.
func (s *Storm) Run(length time.Duration) Round {
	t := s.t
	t.Helper()
	began := time.Now()
	s.ending.Store(false)
	s.counts, s.odd, s.wrong = make(map[string]int), oddities{}, oddities{}
	s.slots = nil
	for i := range s.Processes {
		s.slots = append(s.slots, &slot{storm: s, number: i})
	}
	var lanes []*Lane
	var running sync.WaitGroup
	for i := range s.Processes * max(s.Program.Lanes, 1) {
		l := &Lane{Storm: s, Number: i, Rand: rand.New(rand.NewPCG(s.Seed, uint64(s.id.Add(1)))), slot: s.slots[i%s.Processes]}
		lanes = append(lanes, l)
		running.Go(l.run)
	}
	s.break_(time.Now().Add(length))
	s.calm()
	running.Wait()
	for _, slot := range s.slots {
		slot.end()
	}
	s.Target.quiet(t)
	return Round{History: s.history(lanes), Faults: s.counts, Took: time.Since(began), Odd: s.odd.list(), Wrong: s.wrong.list()}
}

// Rewind must be called if the database has lost its newest events.
func (s *Storm) Rewind() { s.last = 0 }

// calm ends all faults, and ends each lane after its current request.
func (s *Storm) calm() {
	s.ending.Store(true)
	if s.Target.Wire != nil {
		s.Target.Wire.Mend()
	}
	for _, slot := range s.slots {
		slot.signal(syscall.SIGCONT)
	}
}

// history collects what the lanes have seen and what the database has recorded.
func (s *Storm) history(lanes []*Lane) *history.History {
	t := s.t
	t.Helper()
	h := &history.History{Tables: s.Tables, Ops: make(map[int64]*history.Op), TTL: s.TTL}
	for _, l := range lanes {
		for _, op := range l.ops {
			h.Ops[op.Request.ID] = op
		}
	}
	var err error
	harness.Eventually(t, "the history is read", func() bool {
		h.Events, err = history.Read(context.Background(), s.Target.Admin, s.last)
		return err == nil
	})
	if n := len(h.Events); n > 0 {
		s.last = h.Events[n-1].Seq
	}
	for _, query := range s.Target.empty {
		if _, err := s.Target.Admin.Exec(fill(query, s.last+1)); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	return h
}

func fill(query string, n int64) string {
	if query == "" || query[len(query)-1] != 'd' {
		return query
	}
	return fmt.Sprintf(query, n)
}

func (s *Storm) now() time.Duration { return time.Since(s.began) }
