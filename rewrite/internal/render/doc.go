// Package render writes guarded statements: the statement's own bytes, and between them what the rules of its tables
// check and assign for the tokens of one execution. A [Plan] has the places of these insertions, which package rules
// has found. What is written is compared with the statement that was read before a plan is used at all.
package render
