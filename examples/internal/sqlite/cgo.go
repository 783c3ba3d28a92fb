//go:build cgo

package sqlite

import _ "github.com/mattn/go-sqlite3" // registers "sqlite3"

// Driver is the name of the driver that database/sql knows.
const Driver = "sqlite3"
