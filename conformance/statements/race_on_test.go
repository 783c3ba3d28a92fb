//go:build race

package statements

const raceDetector = true
