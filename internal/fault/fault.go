// Package fault says what becomes of a fault of sqlfence's own that shows as a panic.
package fault

// Crashes lets a panic go on that a refusal takes the place of otherwise. The tests set it, before they
// open a database, so that none is taken for a statement that can't be guarded.
var Crashes bool
