// Package schema defines a book; package entstore is generated from schema.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
)

// Book is a row of the table books.
type Book struct{ ent.Schema }

// Fields returns the columns of a book. The fence column is Immutable, so no update writes the column, and Nillable, so
// no create writes the column.
func (Book) Fields() []ent.Field {
	return []ent.Field{
		field.String("isbn").Unique(),
		field.String("title"),
		field.Int64("price"),
		field.Int("prequel_id").Optional().Nillable(),
		field.Time("deleted_at").Optional().Nillable(),
		field.Int64("fence_token").Optional().Nillable().Immutable(),
	}
}

// Edges returns the relation from a book to its sequels.
func (Book) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("sequels", Book.Type).From("prequel").Field("prequel_id").Unique(),
	}
}
