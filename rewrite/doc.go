// Package rewrite inserts guards into SQL statements. It recognises the statements that write to registered tables, and
// inserts expressions that throw an error inside the database if a fencing token is stale. Package sqlfence is built on
// rewrite, and sends the statements.
//
// # Use
//
// [New] takes the tables and their rules. [Rewriter.Plan] returns a plan for a statement, with a verdict:
//
//   - "pass": the statement writes to no registered table. Send the statement unchanged.
//   - "guard": the statement writes to a registered table. Plan.Render takes the tokens, and returns the statement
//     with its guard, and the arguments to send in addition to the statement's arguments.
//   - "refuse": the statement writes, or may write, to a registered table, and can't be guarded. The plan's Refusal has
//     the reason, the position, and what to write instead.
//
// If the database returns an error, [Rewriter.ReadMarker] reports whether a guard has thrown it, and why.
//
// # What it promises
//
// A statement that mentions a registered table in any way but a plain read is guarded or refused. The package doesn't
// guess what a statement means.
//
// Rendering only inserts text: the statement's own bytes stay, in their order. (DEFAULT VALUES, which a guard replaces,
// stays in a comment.) Numbered placeholders keep their numbers. SQLite numbers a bare ? by the placeholders before it,
// including the guard's, so the guard's arguments have places among the statement's arguments.
//
// A guarded statement is applied as a whole, or throws an error and changes nothing. At any isolation level, it throws
// an error if it reaches a row with a stored token higher than the write's token. With the ledger it also throws an
// error if the write's token isn't the newest of its name, and with a claim if the row's claim isn't the token's value.
// If several reasons apply, the error reports a refused token rather than a conflict of serials, and a conflict rather
// than another user's row lock.
//
// A plan with the verdict "guard" is never rendered without its guard: missing values are an error. Equal values always
// render the same text, so that statement caches work.
//
// A Rewriter and its plans are safe for concurrent use. A Rewriter caches plans by the statement's text.
//
// # What it is not
//
// Package rewrite sends nothing to a database, and doesn't import database/sql. Package sqlfence finds the tokens,
// sends the statements, and turns the database's errors into typed errors.
//
// The package is no SQL parser: it may pass or guard a statement that the database then rejects. It doesn't know the
// database's schema, so it doesn't recognise a view, trigger, rule or function that writes to a registered table;
// package sqlfence documents how to cover views, triggers, rules and functions.
//
// The package reads the SQL of PostgreSQL, SQLite, MySQL and MariaDB. It refuses a statement with a meaning that
// depends on a setting, such as standard_conforming_strings, unless the statement is valid only under the default.
package rewrite
