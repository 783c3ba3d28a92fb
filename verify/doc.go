// Package verify compares what a program registers with what its database has.
//
// A registration is a promise about a database that sqlfence hasn't seen: a misspelt name guards nothing, in silence.
// [Check] reports what is wrong with the registered tables, and the ways around sqlfence that the database's catalogue
// knows of. [OnConnect] is an option of [sqlfence.Open] that does so when the database is first connected to, and
// refuses connections as long as a registration is wrong. docs/data/verify.md lists all findings.
package verify
