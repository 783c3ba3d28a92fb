// Package rewrite guards SQL statements: text in, text out. It knows which
// tables are registered, recognises the statements that write to them, and
// inserts expressions that raise an error inside the database where a fencing
// token is stale. It runs nothing and imports no database/sql; package sqlfence
// is built on it.
//
// What it can't recognise it doesn't guess: a statement that names a registered
// table in any way but a plain read is guarded or refused.
package rewrite
