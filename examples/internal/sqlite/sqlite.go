// Package sqlite gives the examples an embedded SQLite: mattn/go-sqlite3 if there is a C compiler, or
// modernc.org/sqlite, which needs no C compiler. The go command itself turns cgo off where it finds no C compiler, so
// the examples run either way.
package sqlite

import "net/url"

// DSN returns the data source name of the database file at path, which both drivers read alike. In WAL mode readers
// don't wait for a writer, and writers wait for each other at most a minute.
func DSN(path string) string {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}
	u.RawQuery = "_busy_timeout=60000&_journal_mode=WAL&_synchronous=NORMAL"
	return u.String()
}
