// Package fenced finds what a fenced database was opened with, for the packages that work on one.
package fenced

import (
	"database/sql"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/core"
)

// A Driver is a driver that sqlfence has put around another.
type Driver interface{ Settings() *core.Settings }

// SettingsOf returns the settings of a fenced database, for a function that asks for them. Of a database that
// isn't fenced, or with a driver around the fenced one, it is core.ErrInvalid.
func SettingsOf(function string, db *sql.DB) (*core.Settings, error) {
	if db == nil {
		return nil, fmt.Errorf("%w: %s: nil database", core.ErrInvalid, function)
	}
	if d, ok := db.Driver().(Driver); ok {
		return d.Settings(), nil
	}
	return nil, fmt.Errorf("%w: %s: the driver %T isn't fenced, or another wrapper surrounds it; open the database by "+
		"sqlfence.Open, OpenDB or a registered driver", core.ErrInvalid, function, db.Driver())
}

// Schema returns the schema of sqlfence's own tables by WithSchema, of a driver that may be fenced; empty without.
func Schema(driver any) string {
	if d, ok := driver.(Driver); ok {
		return d.Settings().Schema()
	}
	return ""
}
