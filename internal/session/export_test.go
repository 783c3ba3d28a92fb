package session

// The databases' values. They are below no folder of a database, so the external tests fill them.
var Postgres, SQLite, MySQL = new(Dialect), new(Dialect), new(Dialect)
