package orm_test

import (
	"context"
	"testing"

	"github.com/uptrace/bun"
)

// Migrations that ORMs generate from their models.

var gormMigrator = migrator{
	name: "gorm AutoMigrate", modules: gormORM.modules, bases: gormORM.bases,
	create: func(ctx context.Context, t *testing.T, db *ormDB) error {
		return openGorm(t, db).WithContext(ctx).AutoMigrate(&gormUnpriced{})
	},
	change: func(ctx context.Context, t *testing.T, db *ormDB) error {
		return openGorm(t, db).WithContext(ctx).AutoMigrate(&gormPriced{})
	},
}

// AutoMigrate creates the fence column from these models. Afterwards gorm only reads the fence column.
type (
	gormUnpriced struct {
		ID         int64
		ISBN       string `gorm:"unique"`
		Title      string
		FenceToken *int64 `gorm:"->"`
	}
	gormPriced struct {
		gormUnpriced
		Price int64
	}
)

func (gormUnpriced) TableName() string { return "books" }

var entMigrator = migrator{
	name: "ent", modules: entORM.modules, bases: entORM.bases,
	create: entMigrate, change: entMigrate, onePiece: true,
}

func entMigrate(ctx context.Context, _ *testing.T, db *ormDB) error {
	return openEnt(db).Schema.Create(ctx)
}

var bunMigrator = migrator{
	name: "bun", modules: bunORM.modules, bases: bunORM.bases,
	create: func(ctx context.Context, _ *testing.T, db *ormDB) error {
		_, err := openBun(db).NewCreateTable().Model((*bunUnpriced)(nil)).IfNotExists().Exec(ctx)
		return err
	},
	// change queries the column price first, because SQLite has no ADD COLUMN IF NOT EXISTS.
	change: func(ctx context.Context, _ *testing.T, db *ormDB) error {
		if _, err := db.ExecContext(ctx, "SELECT price FROM books"); err == nil {
			return nil
		}
		_, err := openBun(db).NewAddColumn().Model((*bunUnpriced)(nil)).ColumnExpr("price bigint").Exec(ctx)
		return err
	},
}

type bunUnpriced struct {
	bun.BaseModel `bun:"table:books"`

	ID         int64  `bun:",pk,autoincrement"`
	ISBN       string `bun:",unique"`
	Title      string
	FenceToken int64 // no scanonly, because bun would not create the column
}
