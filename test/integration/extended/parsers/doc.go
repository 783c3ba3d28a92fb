// Package parsers holds tests that compare package rewrite with the databases' own parsers, statement by statement. No
// database server is needed: PostgreSQL's parser runs as WebAssembly, SQLite is compiled in, and a parser made after
// MySQL's grammar reads for MySQL and MariaDB. This parser knows little of MariaDB's extensions, executes every
// executable comment, and checks no names. Its statements are limited to syntax that the parser and the servers read
// alike; package test/integration/promises/mysql runs other statements.
//
// For each statement, written by a grammar, varied, or mutated, the parser reports the registered tables that the
// statement writes to. The tests then check that
//
//  1. every statement that writes to a registered table is guarded or refused,
//     and a guarded one is guarded for just the writes that the parser finds;
//  2. a statement that writes to no registered table passes, except for refusals that are listed with a reason;
//  3. the guarded text can be parsed;
//  4. its tree has a guard at each write, and is the original's without them;
//  5. few writes are refused for a reason that isn't one of the documented ones.
//
// SQLFENCE_STATEMENTS sets how many statements are written for each dialect,
// SQLFENCE_SEED the seed of the random choices.
package parsers
