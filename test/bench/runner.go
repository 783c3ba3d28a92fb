package main

import (
	"context"
	"fmt"
	"time"
)

// beforeSuffix is what a contestant with the sqlfence of -base has after its name.
const beforeSuffix = ", before"

// patience is how many times longer than planned a contestant's rounds may take. Then it
// has no more of them.
const patience = 4

// A runner runs measurements, one at a time.
type runner struct {
	config  config
	servers *servers
	workers *workers
	base    string // the program with the sqlfence of -base; empty if there is none
	places  int
}

func newRunner(c config, s *servers, base string) *runner {
	return &runner{config: c, servers: s, workers: newWorkers(s), base: base}
}

func (r *runner) close() { r.workers.close() }

// An entry is a contestant in a measurement.
type entry struct {
	result
	player player
	calls  int           // in a slice
	spent  time.Duration // so far
	limit  time.Duration
}

// measure lets the contestants of a measurement take turns. What goes wrong is in the
// results.
func (r *runner) measure(ctx context.Context, m *measurement) *measured {
	entries := r.entries(ctx, m)
	defer func() {
		for _, e := range entries {
			if e.player != nil {
				e.player.close()
			}
		}
	}()
	for _, e := range entries {
		r.calibrate(ctx, m, e)
	}
	for round := range r.config.rounds {
		for i := range entries {
			r.turn(ctx, entries[(round+i)%len(entries)], round)
		}
	}
	if m.far {
		for _, e := range entries {
			r.countTrips(ctx, e)
		}
	}
	result := &measured{measurement: m}
	for _, e := range entries {
		result.results = append(result.results, e.result)
	}
	return result
}

// entries starts the contestants.
func (r *runner) entries(ctx context.Context, m *measurement) []*entry {
	var entries []*entry
	start := func(c contestant, name, program string) {
		r.places++
		e := &entry{result: result{name: name, durability: c.durability, rounds: make([]sample, r.config.rounds)}}
		e.player, e.failed = r.player(ctx, m, c, fmt.Sprintf("bench%d", r.places), program)
		entries = append(entries, e)
	}
	for _, c := range m.contestants {
		start(c, c.name, "")
		if c.fenced && r.base != "" {
			start(c, c.name+beforeSuffix, r.base)
		}
	}
	return entries
}

// player starts a contestant in the program, by default this one. With -base none is in
// this process, or it would have a larger heap than the others.
func (r *runner) player(ctx context.Context, m *measurement, c contestant, place, program string) (player, error) {
	if program == "" && m.processes == 0 && r.base == "" {
		return begin(m.stage(r.servers, place, true), c)
	}
	return r.workers.begin(ctx, program, m, c.name, place)
}

// stage is a stage for the measurement's contestants.
func (m *measurement) stage(s *servers, place string, lead bool) *stage {
	return &stage{servers: s, place: place, lead: lead, far: m.far, callers: max(m.callers, 1)}
}

// warmUp is how many calls of a caller aren't like the later ones: they open connections, and PostgreSQL plans a
// statement five times before it keeps a plan.
const warmUp = 8

// calibrate warms the contestant up, and finds how many calls fill a slice.
func (r *runner) calibrate(ctx context.Context, m *measurement, e *entry) {
	want := r.config.slice * time.Duration(max(m.slices, 1))
	callers := max(m.callers, 1) * max(m.processes, 1)
	e.limit = patience * time.Duration(r.config.rounds) * want
	for n := 0; n < warmUp && e.failed == nil && !r.config.short && e.spent < patience*want; n++ {
		var s sample
		s, e.failed = e.player.slice(ctx, callers, false)
		e.spent += s.Elapsed
	}
	e.calls = callers
	for e.failed == nil {
		s, err := e.player.slice(ctx, e.calls, false)
		e.spent += s.Elapsed
		switch {
		case err != nil:
			e.failed = err
		case r.config.short || s.Elapsed >= want:
			return
		case s.Elapsed >= want/4:
			e.calls = int(float64(e.calls) * float64(want) / float64(s.Elapsed))
			return
		default:
			e.calls *= 4
		}
	}
}

// turn is a contestant's slice of a round.
func (r *runner) turn(ctx context.Context, e *entry, round int) {
	if e.failed != nil || e.spent > e.limit && e.ran() {
		return
	}
	s, err := e.player.slice(ctx, e.calls, false)
	e.spent += s.Elapsed
	if err != nil {
		e.failed = err
		return
	}
	e.rounds[round] = s
}

// countTrips counts round trips of one caller, once nothing is new to it any more.
func (r *runner) countTrips(ctx context.Context, e *entry) {
	const calls = 5
	for range 2 {
		if e.failed != nil {
			return
		}
		before := r.servers.proxies.trips()
		if _, err := e.player.slice(ctx, calls, true); err != nil {
			e.failed = err
		}
		e.trips = float64(r.servers.proxies.trips()-before) / calls
	}
}
