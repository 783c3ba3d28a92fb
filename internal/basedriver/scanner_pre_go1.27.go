//go:build !go1.27

package basedriver

import "database/sql/driver"

// WithScanner returns rows: before Go 1.27 there is no RowsColumnScanner.
func WithScanner(rows, _ driver.Rows, _ ErrorConverter) driver.Rows { return rows }
