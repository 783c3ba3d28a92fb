//go:build !race

package parsers

const raceDetector = false
