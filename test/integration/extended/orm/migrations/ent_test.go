package migrations_test

import (
	"context"
	"testing"

	"entgo.io/ent"
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/mixin"
)

var entRecipe = recipe{
	name: "ent", bases: allBases,
	own: gormRecipe.own,
	up: func(ctx context.Context, _ *testing.T, db *ownedDB, version int) error {
		return runEnt(ctx, db, entBooks(version))
	},
}

func runEnt(ctx context.Context, db *ownedDB, table *schema.Table, opts ...schema.MigrateOption) error {
	driver := entsql.OpenDB(named(db.Base, dialect.Postgres, dialect.SQLite, dialect.MySQL), db.DB)
	m, err := schema.NewMigrate(driver, opts...)
	if err != nil {
		return err
	}
	return m.Create(ctx, table)
}

// Fenced is mixed into the schema of each registered table.
type Fenced struct{ mixin.Schema }

// Fields has the fence column, which nothing in ent's code writes.
func (Fenced) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("fence_token").Optional().Nillable().Immutable(),
	}
}

// entBooks returns the table that ent generates for a schema with these fields.
func entBooks(version int) *schema.Table {
	fence := Fenced{}.Fields()[0].Descriptor()
	return entTable([]*schema.Column{
		{Name: "id", Type: field.TypeInt64, Increment: true},
		{Name: "title", Type: field.TypeString},
		{Name: fence.Name, Type: fence.Info.Type, Nullable: fence.Optional},
		{Name: "price", Type: field.TypeInt64, Default: 10},
	}[:version+1]...)
}

func entTable(columns ...*schema.Column) *schema.Table {
	return &schema.Table{Name: "books", Columns: columns, PrimaryKey: columns[:1]}
}
