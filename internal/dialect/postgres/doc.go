// Package postgres is all that sqlfence knows of PostgreSQL, a file a subject. Other databases have the same files.
package postgres
