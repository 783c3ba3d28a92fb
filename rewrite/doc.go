// Package rewrite guards SQL statements: text in, text out. It recognises the
// statements that write to registered tables, and inserts expressions that raise an
// error inside the database where a fencing token is stale. Package sqlfence is built
// on it.
//
// # Use
//
// [New] takes the tables and their rules. [Rewriter.Plan] reads a statement and says
// what is to be done with it:
//
//   - [Pass]: it writes to no registered table. Send it as it is.
//   - [Guard]: it writes to one. [Plan.Render] returns the statement with its guard for
//     the tokens it runs with, and the arguments to be sent behind its own.
//   - [Refuse]: it writes, or may write, in a way that can't be guarded. [Refusal] says
//     why, where, and what to write instead.
//
// When the database raises, [ReadMarker] reads from the text of its error what the
// guard has met.
//
// # What it promises
//
// What isn't recognised isn't guessed: a statement that mentions a registered table in
// any way but a plain read is guarded or refused.
//
// The user's bytes stay, in their order; text is only inserted, and the placeholders
// keep their numbers. (DEFAULT VALUES stays in a comment.) In SQLite each bare ? gets
// the number that it has.
//
// A guarded statement is applied whole, or raises and changes nothing. A row whose
// stored token is higher than the statement's raises, whatever the isolation level; so
// does a token that isn't the newest of its name, where the ledger is compared. Of
// several reasons one is raised: a token's first, then a conflict of serials, then a
// lock.
//
// A plan to guard is never rendered without its guard by mistake: values that are
// missing are an error. Each rendered form is the same text for the same values, which
// statement caches rely on.
//
// A Rewriter and its plans are safe for concurrent use, and plans are kept by the
// statement's text.
//
// # What it is not
//
// It runs nothing and imports no database/sql: to find the tokens, to send the text and
// to type the errors is package sqlfence's part.
//
// It is no parser of SQL: a statement that the database would refuse may be guarded or
// passed, and the database then refuses it. It doesn't know the database's schema, so
// it sees no view, trigger, rule or function that writes to a registered table behind
// another name; package sqlfence says what can be done about those.
//
// It reads PostgreSQL's and SQLite's language. Settings that change how a text is read
// are taken to be the defaults where a text can't be read in another way, and are a
// reason to refuse where it can.
package rewrite
