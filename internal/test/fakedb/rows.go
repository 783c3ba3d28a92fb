package fakedb

import (
	"database/sql/driver"
	"fmt"
	"io"
)

type rows struct{ response Response }

func (r *rows) Columns() []string { return r.response.Columns }
func (r *rows) Close() error      { return nil }

func (r *rows) Next(dest []driver.Value) error {
	if len(r.response.Rows) == 0 {
		if r.response.RowsErr != nil {
			return r.response.RowsErr
		}
		return io.EOF
	}
	row := r.response.Rows[0]
	r.response.Rows = r.response.Rows[1:]
	if len(row) != len(dest) {
		return fmt.Errorf("fakedb: a row of %d values for %d columns", len(row), len(dest))
	}
	for i, value := range row {
		dest[i] = value
	}
	return nil
}
