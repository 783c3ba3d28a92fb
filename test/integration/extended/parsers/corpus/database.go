package main

import "slices"

// A database is a database for which the corpus collects statements.
type database struct {
	name   string
	listed string   // in the list of modules
	words  []string // in the names of what is for it
	oracle oracle
}

var databases = [2]database{
	{"PostgreSQL", "postgres", []string{"postgres", "postgresql", "pg", "pgx", "pgxv5", "psql", "pgsql", "pgstore", "riverpgxv5"}, postgres{}},
	{"SQLite", "sqlite", []string{"sqlite", "sqlite3", "sqlitestore", "sqlitex", "riversqlite"}, sqlite{}},
}

// others are words of what is for neither.
var others = []string{"mysql", "mariadb", "mssql", "sqlserver", "oracle", "clickhouse", "spanner", "cassandra",
	"snowflake", "bigquery", "redshift", "duckdb", "databricks", "cloudspanner", "elasticsearch", "crdb", "cockroach",
	"cockroachdb", "tidb", "mongodb", "deltalake", "azuresynapse", "neo4j", "hive", "trino"}

// A set holds some of the databases.
type set [len(databases)]bool

// listedAs returns the database with a name in the list of modules.
func listedAs(name string) (s set, ok bool) {
	for i, db := range databases {
		s[i] = db.listed == name
		ok = ok || s[i]
	}
	return s, ok
}

// namedIn returns the databases that a word names; other reports a word of a third database.
func namedIn(word string) (s set, other bool) {
	for i, db := range databases {
		s[i] = slices.Contains(db.words, word)
	}
	return s, slices.Contains(others, word)
}

// or returns the union of the sets.
func (s set) or(t set) set {
	for i := range s {
		s[i] = s[i] || t[i]
	}
	return s
}

// and returns the intersection of the sets.
func (s set) and(t set) set {
	for i := range s {
		s[i] = s[i] && t[i]
	}
	return s
}
