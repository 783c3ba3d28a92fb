// Package advise has the sentences of all refusals: why a statement can't be guarded, and what to write instead. The
// code that decides about a statement names a sentence by its Code, so that no decision depends on a sentence's text.
package advise

import "fmt"

// A Code is a reason for a refusal: a sentence without its full stop, with %s for each named part of the statement.
type Code string

// Sentence returns the sentence about these parts of a statement.
func (c Code) Sentence(of ...any) string {
	if len(of) == 0 {
		return string(c)
	}
	return fmt.Sprintf(string(c), of...)
}
