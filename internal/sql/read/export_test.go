package read

// The databases' values. They are below no folder of a database, so the external tests fill them.
var Postgres, SQLite, MySQL = new(Grammar), new(Grammar), new(Grammar)
