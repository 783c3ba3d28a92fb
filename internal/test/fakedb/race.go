//go:build race

package fakedb

// Race reports whether the race detector, which allocates, is on.
const Race = true
