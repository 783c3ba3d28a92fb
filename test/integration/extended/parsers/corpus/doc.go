// Corpus collects the writes that real programs send to PostgreSQL and SQLite, and counts
// what package rewrite does with them under each kind of rule.
//
//	go run . -modules modules.txt -out /tmp/corpus
//
// Corpus fetches the modules of a list with the go command, finds SQL in their constants and in their .sql files, and
// counts those statements that the database's own parser accepts and that write rows. The tables that a statement
// writes to are registered one by one with RowFence, with Ledger, and with Key of the table's primary key.
//
// The folder of -out gets counts.md, with counts only, which is committed next to this file; report.md, with an example
// of each class; and statements.jsonl, with every statement. report.md and statements.jsonl hold other projects' SQL
// and must not be committed.
//
// # Limits
//
// Corpus doesn't see statements that a program composes at run time, as an ORM does, and executes no statement. Where a
// Go format has a gap at the place of a table, a number or a list, the gap is filled; other statements with gaps are
// counted and left out.
package main
