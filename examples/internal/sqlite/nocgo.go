//go:build !cgo

package sqlite

import _ "modernc.org/sqlite" // registers "sqlite"

// Driver is the name of the driver that database/sql knows.
const Driver = "sqlite"
