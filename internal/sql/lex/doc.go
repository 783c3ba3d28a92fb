// Package lex splits the text of SQL statements into tokens, as a database's own
// scanner does, and reads and writes names. What differs from database to database is
// a value, [Rules], one file a database; a text that could be read in two ways is an
// error. A [Grammar] says which statements a database has, for what reads the tokens.
package lex
