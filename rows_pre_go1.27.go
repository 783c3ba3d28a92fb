//go:build !go1.27

package sqlfence

import "database/sql/driver"

// withColumnScanner returns rows: before Go 1.27 there is no RowsColumnScanner.
func withColumnScanner(rows driver.Rows, _ *guardedRows) driver.Rows { return rows }
