//go:build race

package fakedb

// Race says whether the race detector is on, which allocates.
const Race = true
