package session

import "context"

// UniqueKeys are what the rows of a table are unique by: by these a guard finds the rows that a REPLACE deletes.
// A statement that goes by them compares their shape as it is executed, and raises where it is another one.
type UniqueKeys struct {
	// Shape is the definitions of the table and of its indexes.
	Shape string

	Keys [][]KeyColumn

	// Odd is why the rows in the way of a new one can't be found by the keys; empty where they can.
	Odd string
}

// A KeyColumn is a column of a unique key. Names are as the database has them.
type KeyColumn struct {
	Name      string
	Collation string // empty for none
	Default   string // what a row without a value of its own gets, a constant in SQL; empty for NULL
	NotNull   bool
}

// Unique is how the unique keys of a table are asked for.
type Unique struct {
	// Shape and Detail return expressions of a text, for a table by its schema and name: the shape, and what
	// Read reads, with the shape in it.
	Shape, Detail func(schema, table string) string
	Read          func(detail string) (*UniqueKeys, error)

	// Lock is a query, of a schema, that waits for the lock which its writers take: a transaction that has begun by
	// reading may not write any more once another has written.
	Lock func(schema string) string

	Home   string // the schema of a name without one
	Hidden string // the one that a name without a schema is looked for first, which isn't supported
}

// UniqueKeys returns the unique keys of a table: those that the pool knows, or what the database says.
func (s *Session) UniqueKeys(ctx context.Context, c Conn, table Name) (*UniqueKeys, error) {
	if keys, known := s.database.unique.Load(table); known {
		return keys.(*UniqueKeys), nil
	}
	u := s.dialect.Unique
	if _, err := c.Query(ctx, u.Lock(table.Schema)); err != nil {
		return nil, unanswered(ctx, err)
	}
	rows, err := c.Query(ctx, "SELECT "+u.Detail(table.Schema, s.dialect.Text.Text(table.Table)))
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
