// Package parsers holds tests that compare package rewrite with the
// databases' own parsers, statement by statement. No database server is needed:
// PostgreSQL's parser runs as WebAssembly, SQLite is compiled in, and a parser made after
// MySQL's grammar reads for MySQL and MariaDB. That one knows little of what only MariaDB has,
// executes every executable comment, and checks no names; the texts for it keep to what it
// and the servers read alike, and package test/integration/promises/mysql runs others.
//
// For each statement, written by a grammar, varied, or mutated, the parser tells
// which registered tables it writes to. It is then checked that
//
//  1. every statement that writes to a registered table is guarded or refused,
//     and a guarded one is guarded for just the writes that the parser finds;
//  2. what writes to none passes, but for refusals that are listed with a reason;
//  3. the guarded text can be parsed;
//  4. its tree has a guard at each write, and is the original's without them;
//  5. few writes are refused for a reason that isn't one of the documented ones.
//
// SQLFENCE_STATEMENTS sets how many statements are written for each dialect,
// SQLFENCE_SEED the seed of the random choices.
package parsers
