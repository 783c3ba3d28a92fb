package fakedb

import (
	"database/sql/driver"
	"fmt"
	"io"
)

type rows struct{ answer Answer }

func (r *rows) Columns() []string { return r.answer.Columns }
func (r *rows) Close() error      { return nil }

func (r *rows) Next(dest []driver.Value) error {
	if len(r.answer.Rows) == 0 {
		if r.answer.RowsErr != nil {
			return r.answer.RowsErr
		}
		return io.EOF
	}
	row := r.answer.Rows[0]
	r.answer.Rows = r.answer.Rows[1:]
	if len(row) != len(dest) {
		return fmt.Errorf("fakedb: a row of %d values for %d columns", len(row), len(dest))
	}
	for i, value := range row {
		dest[i] = value
	}
	return nil
}
