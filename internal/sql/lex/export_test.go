package lex

// The databases' rules. This package can't import the databases' folders, so the external tests fill the values.
var Postgres, SQLite, MySQL = new(Rules), new(Rules), new(Rules)
