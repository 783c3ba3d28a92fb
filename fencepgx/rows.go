package fencepgx

import (
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// rows are the rows of a query. The guard may refuse a row after the query has returned.
type rows struct {
	pgx.Rows
	ahead    bool                                         // the first row has been read
	endError func(tag pgconn.CommandTag, err error) error // returns the error at the end of the rows; may be nil
	release  func()                                       // releases the connection; may be nil
	raw      func()                                       // records that the application got the connection
	ended    bool
	err      error
}

func (r *rows) Next() bool {
	switch {
	case r.ended:
		return false
	case r.ahead:
		r.ahead = false
		return true
	case r.Rows.Next():
		return true
	}
	r.end()
	return false
}

// Scan closes the rows if a row can't be scanned, as pgx does.
func (r *rows) Scan(dest ...any) error {
	err := r.Rows.Scan(dest...)
	if err != nil {
		r.Close()
	}
	return err
}

func (r *rows) Values() ([]any, error) {
	values, err := r.Rows.Values()
	if err != nil {
		r.Close()
	}
	return values, err
}

func (r *rows) Close() {
	r.Rows.Close()
	r.end()
}

func (r *rows) Err() error {
	if r.ended {
		return r.err
	}
	return r.Rows.Err()
}

// Conn returns the connection, which isn't guarded.
func (r *rows) Conn() *pgx.Conn {
	c := r.Rows.Conn()
	if c != nil && !r.ended {
		r.raw()
	}
	return c
}

// end reads the error at the end of the rows, and releases the connection.
func (r *rows) end() {
	if r.ended {
		return
	}
	r.ended, r.ahead, r.err = true, false, r.Rows.Err()
	if r.endError != nil {
		r.err = r.endError(r.CommandTag(), r.err)
	}
	if r.release != nil {
		r.release()
	}
}

// failedRows are the rows of a query that has failed.
type failedRows struct{ err error }

var _ pgx.Rows = failedRows{}

func (failedRows) Close()                                       {}
func (r failedRows) Err() error                                 { return r.err }
func (failedRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (failedRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (failedRows) Next() bool                                   { return false }
func (r failedRows) Scan(...any) error                          { return r.err }
func (r failedRows) Values() ([]any, error)                     { return nil, r.err }
func (failedRows) RawValues() [][]byte                          { return nil }
func (failedRows) Conn() *pgx.Conn                              { return nil }
func (failedRows) TypeMap() *pgtype.Map                         { return nil }

// A row is the first row of a query.
type row struct{ rows pgx.Rows }

func (r row) Scan(dest ...any) error {
	defer r.rows.Close()
	if err := r.rows.Err(); err != nil {
		return err
	}
	for _, d := range dest {
		if _, ok := d.(*pgtype.DriverBytes); ok {
			return errors.New("cannot scan into *pgtype.DriverBytes from QueryRow") // as pgx says it
		}
	}
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}
