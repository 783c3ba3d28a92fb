// Package rewrite guards SQL statements: text in, text out. It recognises the
// statements that write to registered tables, and inserts expressions that raise an
// error inside the database if a fencing token is stale. Package sqlfence is built on
// it.
//
// # Use
//
// [New] takes the tables and their rules. [Rewriter.Plan] reads a statement and returns a verdict:
//
//   - "pass": it writes to no registered table. Send it as it is.
//   - "guard": it writes to one. [Plan.Render] returns the statement with its guard for
//     the tokens it runs with, and the arguments to send among its own.
//   - "refuse": it writes, or may write, in a way that can't be guarded. The plan's Refusal says
//     why, where, and what to write instead.
//
// If the guard throws an error in the database, [Rewriter.ReadMarker] reads the reason from the error's text.
//
// # What it promises
//
// A statement that mentions a registered table in any way but a plain read is guarded
// or refused. The package doesn't guess what a statement means.
//
// Rendering only inserts text: the user's bytes stay, in their order. (DEFAULT VALUES stays in a comment.) Numbered
// placeholders keep their numbers. SQLite numbers a bare ? by the placeholders before it, including the guard's, so the
// guard's arguments are placed among the statement's.
//
// A guarded statement is applied whole, or throws an error and changes nothing. It throws an error if it reaches a row
// with a stored token higher than the write's token, at any isolation level. With the ledger it also throws an error if
// the write's token isn't the newest of its name, and with a claim if the row's claim value isn't the token's. If
// several reasons apply, the error names a token's first, then a conflict of serials, then a lock.
//
// A plan to guard is never rendered without its guard: missing values are an error. Statement caches rely on stable
// text, so equal values always render the same text.
//
// A Rewriter and its plans are safe for concurrent use. A Rewriter caches plans by the
// statement's text.
//
// # What it is not
//
// It runs nothing and doesn't import database/sql: package sqlfence finds the tokens,
// sends the text and turns errors into types.
//
// The package is no SQL parser: it may pass or guard a statement that the database then rejects. It doesn't know the
// database's schema, so it doesn't recognise a view, trigger, rule or function that writes to a registered table;
// package sqlfence documents how to cover views, triggers, rules and functions.
//
// The package reads the SQL of PostgreSQL, SQLite, MySQL and MariaDB. It refuses a text with a meaning that depends on
// a setting, such as standard_conforming_strings, unless the text is valid only under the default.
package rewrite
