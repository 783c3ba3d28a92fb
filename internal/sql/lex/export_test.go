package lex

// The databases' values. They are below no folder of a database, so the external tests fill them.
var Postgres, SQLite, MySQL = new(Rules), new(Rules), new(Rules)
