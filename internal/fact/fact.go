// Package fact has the type of what is either so or not so of a database. A bool has a zero value that
// says no; a Fact has one that says nothing, so that a test finds what a database was given no answer to.
package fact

// A Fact is [Yes] or [No]. The zero value is neither: nothing was said.
type Fact uint8

// The answers.
const (
	No Fact = iota + 1
	Yes
)

// Is reports whether the fact is so.
func (f Fact) Is() bool { return f == Yes }
