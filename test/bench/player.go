package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A player runs a contestant: in this process, in another one, or in several.
type player interface {
	// slice makes at least calls calls, by as many callers as the measurement has, or by one.
	slice(ctx context.Context, calls int, alone bool) (sample, error)
	close()
}

// A sample is what was seen of some calls.
type sample struct {
	Units   int // of work
	Elapsed time.Duration
	CPU     time.Duration // of this process; 0 if it isn't known
	Allocs  float64       // heap objects
	Bytes   float64
	Trips   int                // round trips over the network, if there is one
	Meters  map[string]float64 // of the server
}

// local is a contestant in this process.
type local struct {
	stage *stage
	work  work
}

// begin starts a contestant here.
func begin(s *stage, c contestant) (player, error) {
	w, err := c.start(s)
	if err != nil {
		s.close()
		return nil, err
	}
	return &local{s, w}, nil
}

func (l *local) close() { l.stage.close() }

func (l *local) slice(ctx context.Context, calls int, alone bool) (sample, error) {
	callers := l.stage.callers
	if alone || l.work.before != nil {
		callers = 1
	}
	calls = max(calls, callers)
	s := sample{Units: calls * max(l.work.per, 1)}
	meters, err := l.meters(ctx)
	if err != nil {
		return s, err
	}
	runtime.GC() // what others have left is not this one's to clear away
	if l.work.before != nil {
		err = l.oneByOne(ctx, calls, &s)
	} else {
		err = l.together(ctx, calls, callers, &s)
	}
	if err != nil {
		return s, err
	}
	after, err := l.meters(ctx)
	for name := range after {
		after[name] -= meters[name]
	}
	s.Meters = after
	return s, err
}

func (l *local) meters(ctx context.Context) (map[string]float64, error) {
	if l.work.meters == nil {
		return nil, nil
	}
	return l.work.meters(ctx)
}

// oneByOne measures the calls without what is done before each.
func (l *local) oneByOne(ctx context.Context, calls int, s *sample) error {
	for range calls {
		if err := l.work.before(ctx); err != nil {
			return fmt.Errorf("before a call: %w", err)
		}
		start := time.Now()
		if err := l.work.call(ctx, 0); err != nil {
			return err
		}
		s.Elapsed += time.Since(start)
	}
	return nil
}

// together measures a number of calls, divided among several callers.
func (l *local) together(ctx context.Context, calls, callers int, s *sample) error {
	var taken atomic.Int64
	var failed atomic.Pointer[error]
	loop := func(caller int) {
		for taken.Add(1) <= int64(calls) && failed.Load() == nil {
			if err := l.work.call(ctx, caller); err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		}
	}
	clock := l.clock()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := cpuTime(), clock()
	if callers == 1 {
		loop(0)
	} else {
		var wg sync.WaitGroup
		for caller := range callers {
			wg.Go(func() { loop(caller) })
		}
		wg.Wait()
	}
	s.Elapsed, s.CPU = clock()-start, cpuTime()-cpu
	runtime.ReadMemStats(&after)
	s.Allocs = float64(after.Mallocs - before.Mallocs)
	s.Bytes = float64(after.TotalAlloc - before.TotalAlloc)
	if err := failed.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

func (l *local) clock() func() time.Duration {
	if l.work.clock != nil {
		return l.work.clock
	}
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
