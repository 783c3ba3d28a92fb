// Package rules decides what becomes of a statement: it passes, is refused, or gets the insertions that guard it. A
// rule is a file. [Registration.Finds] leaves out the texts in which no table's name stands; [Registration.Read] plans
// the others.
package rules
