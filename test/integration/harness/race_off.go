//go:build !race

package harness

// RaceEnabled says whether the race detector is on.
const RaceEnabled = false
