package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// A measurement lets contestants do the same work. Every contestant is compared with the first.
type measurement struct {
	group     string // see groups
	table     string // of the report, in which this is a row or a column
	on        string // what it runs on, such as "pgx" or "mattn, WAL FULL"
	name      string // of what is done: "UPDATE", "INSERT of 1,000 rows"; may be empty
	callers   int    // at once, in each process; 0 is 1
	processes int    // 0 is this one
	far       bool   // there is a network between client and server
	long      bool   // not with -short
	slices    int    // how many slices of the usual length are one of this; 0 is 1

	contestants []contestant
}

// A contestant is one way to do the work.
type contestant struct {
	name       string
	durability string // what a crash of the machine can take away; empty: as all of the measurement
	fenced     bool   // runs code of sqlfence: with -base, that of the other checkout is measured too

	// start prepares the work. An error says why the contestant can't take part.
	start func(s *stage) (work, error)
}

// Work is what a contestant does.
type work struct {
	// call does the work once, for one of the callers.
	call func(ctx context.Context, caller int) error

	// before makes ready for the next call, and isn't measured; nil if there is nothing to
	// do. With it there is one caller.
	before func(ctx context.Context) error

	// clock returns how much time the calls have taken so far, if that isn't the time
	// that passes.
	clock func() time.Duration

	// meters returns counters of the server, of which each call has its part; nil for none.
	meters func(ctx context.Context) (map[string]float64, error)

	// per is how many units of work a call does; 0 is 1.
	per int
}

// An errSkip says why a contestant has no part in a measurement; that is no failure.
type errSkip string

func (e errSkip) Error() string { return string(e) }

func skipped(err error) bool {
	var skip errSkip
	return errors.As(err, &skip)
}

// title identifies the measurement.
func (m *measurement) title() string { return m.group + ": " + m.label() }

// label returns a measurement's name within its group.
func (m *measurement) label() string {
	var parts []string
	for _, part := range []string{m.name, m.on} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if m.processes > 0 {
		parts = append(parts, fmt.Sprintf("%d processes", m.processes))
	}
	if m.callers > 0 {
		parts = append(parts, count(m.callers, "caller"))
	}
	if m.far {
		parts = append(parts, "network")
	}
	return strings.Join(parts, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(n) + " " + what + "s"
}

// measurements are all that there are, in the order of the report.
var measurements = sync.OnceValue(func() []*measurement {
	var all []*measurement
	for _, g := range groups {
		for _, m := range g.measurements() {
			m.group = g.name
			all = append(all, m)
		}
	}
	return all
})

// A stage is where a contestant does its work: in one process.
type stage struct {
	servers *servers
	place   string // a name that no other contestant has, for what is created
	lead    bool   // of several processes, the one that creates it
	far     bool
	callers int

	cleanups []func()
}

// cleanup calls f when the contestant is done, after those that were added later.
func (s *stage) cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *stage) close() {
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
	s.cleanups = nil
}
