package main

import (
	"slices"
	"time"
)

// results are what a run has found.
type results struct {
	config   config
	servers  *servers
	started  time.Time
	took     time.Duration
	measured []*measured
}

func (r *results) add(m *measured) { r.measured = append(r.measured, m) }

// measured is a measurement with what was found.
type measured struct {
	*measurement
	results []result
}

// A result is what was seen of a contestant.
type result struct {
	name       string
	durability string
	failed     error    // why there is nothing, or no more
	rounds     []sample // without units where the contestant had no turn
	trips      float64  // of a call
}

// get returns a contestant's result, or nil if there is none.
func (m *measured) get(name string) *result {
	for i := range m.results {
		if r := &m.results[i]; r.name == name && r.ran() {
			return r
		}
	}
	return nil
}

func (r *result) ran() bool { return len(r.each(unitTime)) > 0 }

// each returns a quantity of each round in which the contestant had a turn.
func (r *result) each(of func(sample) float64) []float64 {
	var all []float64
	for _, s := range r.rounds {
		if s.Units > 0 {
			all = append(all, of(s))
		}
	}
	return all
}

// What a unit of work costs.
func unitTime(s sample) float64   { return float64(s.Elapsed) / float64(s.Units) }
func unitCPU(s sample) float64    { return float64(s.CPU) / float64(s.Units) }
func unitAllocs(s sample) float64 { return s.Allocs / float64(s.Units) }

func unitMeter(name string) func(sample) float64 {
	return func(s sample) float64 { return s.Meters[name] / float64(s.Units) }
}

// median returns the median of a quantity.
func (r *result) median(of func(sample) float64) float64 { return middle(r.each(of), 2) }

// A ratio holds the median and the quartiles of one contestant's value divided by another contestant's value in the
// same round.
type ratio struct{ low, median, high float64 }

// to compares two contestants, by rounds in which both had a turn.
func (r *result) to(other *result, of func(sample) float64) (ratio, bool) {
	var all []float64
	for i := range r.rounds {
		if a, b := r.rounds[i], other.rounds[i]; a.Units > 0 && b.Units > 0 && of(b) > 0 {
			all = append(all, of(a)/of(b))
		}
	}
	return ratio{middle(all, 1), middle(all, 2), middle(all, 3)}, len(all) > 0
}

// middle returns the quartile: 2 is the median. Without values it is 0.
func middle(values []float64, quartile int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	place := float64(len(sorted)-1) * float64(quartile) / 4
	i := int(place)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (sorted[i+1]-sorted[i])*(place-float64(i))
}
