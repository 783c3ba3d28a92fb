// Package verify compares a program's registrations with its database.
//
// sqlfence doesn't compare them when the program opens the database, so a misspelt name silently guards nothing.
// [Check] reports defects of the registered tables, and ways around sqlfence that the database's catalogue shows.
// [OnConnect] is an option of [sqlfence.Open] that runs these checks at the first connection, and refuses connections
// while a registration is wrong. docs/data/verify.md lists all findings.
package verify
