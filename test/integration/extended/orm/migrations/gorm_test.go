package migrations_test

import (
	"context"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

var gormRecipe = recipe{
	name: "gorm AutoMigrate", bases: allBases,
	own: func(ctx context.Context, _ *testing.T, db *ownedDB) error {
		store, err := tokens.New(db.DB)
		if err != nil {
			return err
		}
		return store.Setup(ctx)
	},
	up: func(ctx context.Context, _ *testing.T, db *ownedDB, version int) error {
		g, err := openGorm(db)
		if err != nil {
			return err
		}
		switch version {
		case 1:
			err = g.WithContext(ctx).AutoMigrate(&gormBook1{})
		case 2:
			err = g.WithContext(ctx).AutoMigrate(&gormBook2{})
		default:
			err = g.WithContext(ctx).AutoMigrate(&Book{})
		}
		return err
	},
}

func openGorm(db *ownedDB) (*gorm.DB, error) {
	var dialector gorm.Dialector = sqlite.New(sqlite.Config{Conn: db.DB})
	switch db.Dialect {
	case sqlfence.MySQL:
		dialector = mysql.New(mysql.Config{Conn: db.DB})
	case sqlfence.Postgres:
		dialector = postgres.New(postgres.Config{Conn: db.DB, DriverName: db.DriverName})
	}
	return gorm.Open(dialector, &gorm.Config{})
}

type gormBook1 struct {
	ID    int64
	Title string `gorm:"not null"`
}

type gormBook2 struct {
	ID         int64
	Title      string `gorm:"not null"`
	FenceToken int64  `gorm:"->;not null;default:0"`
}

// Book is the model at its last version.
type Book struct {
	ID         int64
	Title      string `gorm:"not null"`
	Price      int64  `gorm:"not null;default:10"`
	FenceToken int64  `gorm:"->;not null;default:0"` // read, never written
}

func (gormBook1) TableName() string { return "books" }
func (gormBook2) TableName() string { return "books" }

// gormNullable declares the fence column as nullable; the database has it as NOT NULL.
type gormNullable struct {
	ID         int64
	Title      string
	FenceToken *int64 `gorm:"->"`
}

func (gormNullable) TableName() string { return "books" }

// AutoMigrate keeps the fence column and its values, whether the model omits the column, matches it or declares it
// nullable.
func TestGormKeepsTheColumn(t *testing.T) {
	for name, model := range map[string]any{"left out": &gormBook1{}, "as it is": &gormBook2{}, "nullable": &gormNullable{}} {
		t.Run(name, func(t *testing.T) {
			harness.EachProgram(t, func(t *testing.T, b harness.Base) {
				source, db := fencedBooks(t, b)
				g, err := openGorm(&ownedDB{b.Raw(t, source), b})
				if err != nil {
					t.Fatal(err)
				}
				if err := g.WithContext(t.Context()).AutoMigrate(model); err != nil {
					t.Fatal(err)
				}
				wantMarked(t, db)
			})
		})
	}
}
