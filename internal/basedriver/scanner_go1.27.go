//go:build go1.27

package basedriver

import (
	"database/sql/driver"
	"io"
	"reflect"
)

var (
	_ driver.RowsColumnScanner              = scannerRows{}
	_ driver.RowsNextResultSet              = scannerRows{}
	_ driver.RowsColumnTypeScanType         = scannerRows{}
	_ driver.RowsColumnTypeDatabaseTypeName = scannerRows{}
	_ driver.RowsColumnTypeLength           = scannerRows{}
	_ driver.RowsColumnTypeNullable         = scannerRows{}
	_ driver.RowsColumnTypePrecisionScale   = scannerRows{}
)

// WithScanner adds the RowsColumnScanner of base, if base has one, to rows, which wraps base.
func WithScanner(rows, base driver.Rows, a ErrorConverter) driver.Rows {
	if scanner, ok := base.(driver.RowsColumnScanner); ok {
		return scannerRows{rows, scanner, a}
	}
	return rows
}

// scannerRows are rows with a RowsColumnScanner. Other optional methods call Rows; if Rows lacks a method, the result
// is database/sql's default.
type scannerRows struct {
	driver.Rows
	scanner driver.RowsColumnScanner
	answers ErrorConverter
}

// NextRow implements driver.RowsColumnScanner.
func (r scannerRows) NextRow() error { return r.answers.ConvertError(r.scanner.NextRow()) }

// ScanColumn implements driver.RowsColumnScanner.
func (r scannerRows) ScanColumn(scan driver.ScanContext, index int, dest any) error {
	return r.scanner.ScanColumn(scan, index, dest)
}

// HasNextResultSet implements driver.RowsNextResultSet.
func (r scannerRows) HasNextResultSet() bool {
	rows, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && rows.HasNextResultSet()
}

// NextResultSet implements driver.RowsNextResultSet.
func (r scannerRows) NextResultSet() error {
	if rows, ok := r.Rows.(driver.RowsNextResultSet); ok {
		return rows.NextResultSet()
	}
	return io.EOF
}

// ColumnTypeScanType implements driver.RowsColumnTypeScanType.
func (r scannerRows) ColumnTypeScanType(index int) reflect.Type {
	if rows, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return rows.ColumnTypeScanType(index)
	}
	return reflect.TypeFor[any]()
}

// ColumnTypeDatabaseTypeName implements driver.RowsColumnTypeDatabaseTypeName.
func (r scannerRows) ColumnTypeDatabaseTypeName(index int) string {
	if rows, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return rows.ColumnTypeDatabaseTypeName(index)
	}
	return ""
}

// ColumnTypeLength implements driver.RowsColumnTypeLength.
func (r scannerRows) ColumnTypeLength(index int) (int64, bool) {
	if rows, ok := r.Rows.(driver.RowsColumnTypeLength); ok {
		return rows.ColumnTypeLength(index)
	}
	return 0, false
}

// ColumnTypeNullable implements driver.RowsColumnTypeNullable.
func (r scannerRows) ColumnTypeNullable(index int) (nullable, ok bool) {
	if rows, has := r.Rows.(driver.RowsColumnTypeNullable); has {
		return rows.ColumnTypeNullable(index)
	}
	return false, false
}

// ColumnTypePrecisionScale implements driver.RowsColumnTypePrecisionScale.
func (r scannerRows) ColumnTypePrecisionScale(index int) (precision, scale int64, ok bool) {
	if rows, has := r.Rows.(driver.RowsColumnTypePrecisionScale); has {
		return rows.ColumnTypePrecisionScale(index)
	}
	return 0, 0, false
}
