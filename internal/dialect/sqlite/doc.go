// Package sqlite is all that sqlfence knows of SQLite, a file a subject. Other databases have the same files.
package sqlite
