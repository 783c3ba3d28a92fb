package main

import "slices"

// A database is one of those that statements are collected for.
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

// A set says which of the databases are in it.
type set [len(databases)]bool

// listedAs returns the database that the list of modules calls so.
func listedAs(name string) (s set, ok bool) {
	for i, db := range databases {
		s[i] = db.listed == name
		ok = ok || s[i]
	}
	return s, ok
}

// namedIn returns the databases that a word is of; other holds for one of neither.
func namedIn(word string) (s set, other bool) {
	for i, db := range databases {
		s[i] = slices.Contains(db.words, word)
	}
	return s, slices.Contains(others, word)
}

// or returns what is in one of the sets.
func (s set) or(t set) set {
	for i := range s {
		s[i] = s[i] || t[i]
	}
	return s
}

// and returns what is in both sets.
func (s set) and(t set) set {
	for i := range s {
		s[i] = s[i] && t[i]
	}
	return s
}
