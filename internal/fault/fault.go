// Package fault decides what happens after a panic of sqlfence's own code.
package fault

// Crashes lets a panic crash the program. Otherwise sqlfence recovers, and refuses the statement as unguardable. Tests
// set Crashes before they open a database, so that a panic doesn't look like a refusal.
var Crashes bool
