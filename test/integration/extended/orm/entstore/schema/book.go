// Package schema says what a book is; package entstore is generated from it.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
)

// Book is a row of the table books.
type Book struct{ ent.Schema }

// Fields of a book. The fence column is Immutable, so that no update writes it,
// and Nillable, so that no create does.
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

// Edges of a book: the books that follow it.
func (Book) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("sequels", Book.Type).From("prequel").Field("prequel_id").Unique(),
	}
}
