package session

import (
	"context"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// UniqueKeys are the unique keys of a table. A REPLACE guard uses them to find the rows that the REPLACE deletes. A
// guard built from these keys fails if the table's shape has changed.
type UniqueKeys struct {
	// Shape is the definitions of the table and its indexes.
	Shape string

	Keys [][]KeyColumn

	// Odd is why the keys can't find the rows that conflict with a new row; empty if they can.
	Odd string
}

// A KeyColumn is a column of a unique key. Names are as the database has them.
type KeyColumn struct {
	Name      string
	Collation string // empty for none
	Default   string // default value, a constant in SQL; empty for NULL
	NotNull   bool
}

// Unique holds the queries for a table's unique keys.
type Unique struct {
	// Shape and Detail return text expressions for a table by its schema and name. Shape's value is the table's shape.
	// Detail's value includes the shape, and is parsed by Read.
	Shape, Detail func(schema, table string) string
	Read          func(detail string) (*UniqueKeys, error)

	// Lock is a query of a schema that waits for the lock of the schema's writers: a transaction that begins by reading
	// can't write after another transaction has written.
	Lock func(schema string) string

	Home   string // default schema of a name
	Hidden string // schema that is searched first, which isn't supported
}

// UniqueKeys returns the unique keys of a table, from the pool's cache or from the database.
func (s *Session) UniqueKeys(ctx context.Context, c Conn, table Name) (*UniqueKeys, error) {
	if keys, known := s.database.unique.Load(table); known {
		return keys.(*UniqueKeys), nil
	}
	u := s.dialect.Unique
	if _, err := c.Query(ctx, u.Lock(table.Schema)); err != nil {
		return nil, unanswered(ctx, err)
	}
	rows, err := c.Query(ctx, sqltext.Whole(s.dialect.Text, "SELECT "+u.Detail(table.Schema, s.dialect.Text.Text(table.Table))))
	if err != nil {
		return nil, unanswered(ctx, err)
	}
	keys, err := u.Read(rows[0][0])
	if err == nil {
		s.database.unique.Store(table, keys)
	}
	return keys, err
}

// ForgetKeys forgets the unique keys of a table.
func (d *Database) ForgetKeys(table Name) { d.unique.Delete(table) }
