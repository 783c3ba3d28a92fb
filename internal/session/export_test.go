package session

// The dialects of the databases. The external tests fill them, because this package can't import the databases'
// folders.
var Postgres, SQLite, MySQL = new(Dialect), new(Dialect), new(Dialect)
