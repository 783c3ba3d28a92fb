// Package fact has a type for yes-or-no properties of a database. The zero value of a Fact means that the property
// isn't set, while a bool's zero value means no. So a test finds a property that a database definition leaves out.
package fact

// A Fact is [Yes] or [No]. The zero value is neither: the property isn't set.
type Fact uint8

// The values of a Fact.
const (
	No Fact = iota + 1
	Yes
)

// Is reports whether the fact is Yes.
func (f Fact) Is() bool { return f == Yes }
