package session

import (
	"context"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// UniqueKeys are the unique keys of a table. The guard of a REPLACE uses them to find the rows that the REPLACE
// deletes. The guard throws an error if the definitions of the table or its indexes have changed since the keys were
// read.
type UniqueKeys struct {
	// Shape is the text of the definitions of the table and its indexes.
	Shape string

	Keys [][]KeyColumn

	// Unusable is why a guard can't find, by these keys, the rows that conflict with a new row; empty if it can.
	Unusable string
}

// A KeyColumn is a column of a unique key. Names are as the database has them.
type KeyColumn struct {
	Name      string
	Collation string // empty if the column has no collation
	Default   string // the column's default value, as a constant in SQL; empty for NULL
	NotNull   bool
}

// Unique holds the queries for a table's unique keys.
type Unique struct {
	// Shape and Detail return SQL expressions about a table, by its schema and name. The value of Shape's expression is
	// UniqueKeys.Shape. The value of Detail's expression contains everything that Read parses.
	Shape, Detail func(schema, table string) string
	Read          func(detail string) (*UniqueKeys, error)

	// Lock returns a statement that takes the schema's write lock before the keys are read: a transaction that begins
	// by reading can't write once another client has written.
	Lock func(schema string) string

	DefaultSchema string // the schema of a name without a schema
	SearchedFirst string // the schema that is searched before DefaultSchema; a REPLACE that names it is refused
}

// UniqueKeys returns the unique keys of a table, from the pool's cache or from the database.
func (s *Session) UniqueKeys(ctx context.Context, c Conn, table Name) (*UniqueKeys, error) {
	if keys, known := s.database.unique.Load(table); known {
		return keys.(*UniqueKeys), nil
	}
	u := s.dialect.Unique
	if _, err := c.Query(ctx, u.Lock(table.Schema)); err != nil {
		return nil, queryError(ctx, err)
	}
	text := s.dialect.Text
	rows, err := c.Query(ctx, sqltext.Whole(text, "SELECT "+u.Detail(table.Schema, text.Text(table.Table))))
	if err != nil {
		return nil, queryError(ctx, err)
	}
	keys, err := u.Read(rows[0][0])
	if err == nil {
		s.database.unique.Store(table, keys)
	}
	return keys, err
}

// ForgetKeys forgets the unique keys of a table.
func (d *Database) ForgetKeys(table Name) { d.unique.Delete(table) }
