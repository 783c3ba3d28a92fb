// Package advise has the sentences of all refusals: why a statement can't be guarded, and what to write instead. What
// decides about a statement names one by its code, and can't be changed by it.
package advise

import "fmt"

// A Code is a reason for a refusal: the sentence without its full stop, with %s for what it names of the statement.
type Code string

// Sentence returns the sentence about these parts of a statement.
func (c Code) Sentence(of ...any) string {
	if len(of) == 0 {
		return string(c)
	}
	return fmt.Sprintf(string(c), of...)
}
