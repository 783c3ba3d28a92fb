package main

import (
	"fmt"
	"strings"
	"time"
)

// A quantity is what the cells of a table show.
type quantity struct {
	title string
	of    func(m *measured, contestant string) (string, bool)
}

var (
	timeRatio    = ratioOf("time", unitTime)
	cpuRatio     = ratioOf("client's CPU time", unitCPU)
	absoluteTime = valueOf("time", unitTime, duration)
	allocs       = heapOf("allocations", unitAllocs)
	heap         = heapOf("bytes allocated", func(s sample) float64 { return s.Bytes / float64(s.Units) })
	rate         = valueOf("a second", unitTime, func(ns float64) string { return thousands(int(1e9/ns + 0.5)) })
)

// trips are round trips of a call over the network.
var trips = quantity{"round trips", func(m *measured, name string) (string, bool) {
	r := m.get(name)
	if r == nil || !m.far {
		return "", false
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", r.trips), ".0"), true
}}

// meter is a counter of the server, for each unit of work.
func meter(name string) quantity {
	return quantity{name, func(m *measured, contestant string) (string, bool) {
		value, ok := m.meter(contestant, name)
		return fmt.Sprintf("%.3g", value), ok
	}}
}

// meter returns the median of a counter.
func (m *measured) meter(contestant, name string) (float64, bool) {
	r := m.get(contestant)
	if r == nil {
		return 0, false
	}
	for _, s := range r.rounds {
		if _, ok := s.Meters[name]; ok {
			return r.median(unitMeter(name)), true
		}
	}
	return 0, false
}

func valueOf(title string, of func(sample) float64, format func(float64) string) quantity {
	return quantity{title, func(m *measured, name string) (string, bool) {
		r := m.get(name)
		if r == nil {
			return "", false
		}
		return format(r.median(of)), true
	}}
}

// heapOf is a quantity that isn't known where something is done before each call, nor is
// the CPU time then.
func heapOf(title string, of func(sample) float64) quantity {
	known := valueOf(title, of, func(n float64) string { return fmt.Sprintf("%.0f", n) })
	return quantity{title, func(m *measured, name string) (string, bool) {
		if r := m.get(name); r == nil || r.median(unitCPU) == 0 {
			return "", false
		}
		return known.of(m, name)
	}}
}

// ratioOf returns the ratio to the first contestant, or the duration for the first contestant.
func ratioOf(title string, of func(sample) float64) quantity {
	return quantity{title, func(m *measured, name string) (string, bool) {
		r, first := m.get(name), m.get(m.results[0].name)
		switch {
		case r == nil || r.median(of) == 0:
			return "", false
		case first == nil || r == first:
			return duration(r.median(of)), true
		}
		ratio, ok := r.to(first, of)
		return ratio.String(), ok
	}}
}

func (r ratio) String() string {
	return fmt.Sprintf("%.2f ±%.2f", r.median, (r.high-r.low)/2)
}

func duration(ns float64) string {
	switch d := time.Duration(ns); {
	case ns < 1_000:
		return fmt.Sprintf("%.3g ns", ns)
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", ns/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", ns/1e6)
	default:
		return fmt.Sprintf("%.3g s", ns/1e9)
	}
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
