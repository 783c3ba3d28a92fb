//go:build !race

package sqlfence_test

const raceEnabled = false
