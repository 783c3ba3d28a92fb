package session

// UniqueKeys are what the rows of a table are unique by: by these a guard finds the rows that a REPLACE deletes.
// A statement that goes by them compares their shape as it is executed, and raises them where it is another one.
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

// Unique is how a statement asks for the unique keys of the table that it writes to.
type Unique struct {
	// Shape and Detail return expressions of a text, for a table by its schema and name: the shape, and what
	// Read reads, with the shape in it.
	Shape, Detail func(schema, table string) string
	Read          func(detail string) (*UniqueKeys, error)

	Home   string // the schema of a name without one
	Hidden string // the one that a name without a schema is looked for first, which isn't supported
}

// UniqueKeys returns what is known of the unique keys of a table, by its schema and name; nil for nothing.
func (d *Database) UniqueKeys(table Name) *UniqueKeys {
	keys, _ := d.unique.Load(table)
	known, _ := keys.(*UniqueKeys)
	return known
}

// ForgetKeys forgets the unique keys of a table.
func (d *Database) ForgetKeys(table Name) { d.unique.Delete(table) }

// LearnKeys notes the unique keys of a table that a statement has raised, and reports whether these can be
// read. Without any the keys have changed, and are forgotten.
func (d *Database) LearnKeys(u *Unique, table Name, detail string) bool {
	if detail == "" {
		d.ForgetKeys(table)
		return true
	}
	keys, err := u.Read(detail)
	if err == nil {
		d.unique.Store(table, keys)
	}
	return err == nil
}
