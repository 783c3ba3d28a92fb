package orm_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/dialect/feature"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sqlfence/sqlfence/test/integration/extended/orm/entstore"
	"github.com/sqlfence/sqlfence/test/integration/extended/orm/entstore/book"
)

// The ways in which each ORM writes books with a serial. The model has no serial, or has it as read-only.

// An ormStore is an ORM, or a transaction of an ORM, that writes books. Book 4 has the ISBN i4. Records that are
// written whole hold wrongSerial, which must not reach the database.
type ormStore struct {
	create     ormSetter // the database generates the id
	updates    []ormUpdate
	bulk       func(ctx context.Context) error // adds 1 to the price of every book
	upsert     ormSetter
	upsertAlso ormSetter // an upsert without RETURNING, if upsert has RETURNING; nil: the ORM has none
	joined     ormSetter // an UPDATE of joined tables; nil: the ORM has none
	delete     func(ctx context.Context, id int64) error
	deleteRead func(ctx context.Context, id int64) error // with RETURNING where the database has it; nil: none
	softDelete func(ctx context.Context, id int64) error
	inTx       func(ctx context.Context, f func(ctx context.Context, tx ormStore) error) error
}

// An ormSetter sets a book's price.
type ormSetter = func(ctx context.Context, id, price int64) error

// An ormUpdate is a way to set a price.
type ormUpdate struct {
	name string
	run  ormSetter
}

const (
	oneColumn    = "one column"
	wholeRecord  = "whole record"
	readBack     = "read back by RETURNING"
	valuesInWith = "values in WITH"
)

// without returns the store without the named update.
func (s ormStore) without(name string) ormStore {
	s.updates = slices.DeleteFunc(s.updates, func(u ormUpdate) bool { return u.name == name })
	return s
}

// ormStores are the ORMs that write versioned books.
var ormStores = []struct {
	name string
	open func(t testing.TB, db *ormDB) ormStore
}{
	{"gorm", func(t testing.TB, db *ormDB) ormStore { return gormStore(openGorm(t, db)) }},
	{"gorm, PrepareStmt", func(t testing.TB, db *ormDB) ormStore {
		return gormStore(openGorm(t, db).Session(&gorm.Session{PrepareStmt: true}))
	}},
	{"ent", func(_ testing.TB, db *ormDB) ormStore { return entStore(openEnt(db)) }},
	{"bun", func(_ testing.TB, db *ormDB) ormStore { return bunStore(openBun(db)) }},
	{"sqlx", func(_ testing.TB, db *ormDB) ormStore { return sqlxStore(openSQLX(db)) }},
}

func ormISBN(id int64) string { return fmt.Sprint("i", id) }

// wrongSerial is the serial in records that are written whole.
const wrongSerial = 99

// gormVersioned has the serial as read-only. gormVersioning has the serial as an ordinary field.
type (
	gormVersioned struct {
		ID        int64
		ISBN      string
		Title     string
		Price     int64
		DeletedAt gorm.DeletedAt
		Serial    int64 `gorm:"->"`
	}
	gormVersioning struct {
		ID     int64
		ISBN   string
		Title  string
		Price  int64
		Serial int64
	}
)

func (gormVersioned) TableName() string { return "books" }

func (gormVersioning) TableName() string { return "books" }

func gormStore(g *gorm.DB) ormStore {
	record := func(id, price int64) *gormVersioned {
		return &gormVersioned{ID: id, ISBN: ormISBN(id), Title: "a title", Price: price, Serial: wrongSerial}
	}
	s := ormStore{
		create: func(ctx context.Context, id, price int64) error {
			return g.WithContext(ctx).Create(&gormVersioned{ISBN: ormISBN(id), Price: price}).Error
		},
		updates: []ormUpdate{
			{oneColumn, func(ctx context.Context, id, price int64) error {
				return g.WithContext(ctx).Model(&gormVersioned{ID: id}).Update("price", price).Error
			}},
			{wholeRecord, func(ctx context.Context, id, price int64) error {
				return g.WithContext(ctx).Save(record(id, price)).Error
			}},
			{"fields that are set", func(ctx context.Context, id, price int64) error {
				return g.WithContext(ctx).Updates(&gormVersioned{ID: id, Price: price, Serial: wrongSerial}).Error
			}},
			{readBack, func(ctx context.Context, id, price int64) error {
				return g.WithContext(ctx).Model(&gormVersioned{ID: id}).Clauses(clause.Returning{}).Update("price", price).Error
			}},
		},
		bulk: func(ctx context.Context) error {
			return g.WithContext(ctx).Model(&gormVersioned{}).Where("price > ?", 0).Update("price", gorm.Expr("price + ?", 1)).Error
		},
		upsert: func(ctx context.Context, id, price int64) error {
			return g.WithContext(ctx).Clauses(clause.OnConflict{
				Columns: []clause.Column{{Name: "isbn"}}, DoUpdates: clause.AssignmentColumns([]string{"price"}),
			}).Create(&gormVersioned{ISBN: ormISBN(id), Price: price}).Error
		},
		delete: func(ctx context.Context, id int64) error {
			return g.WithContext(ctx).Unscoped().Delete(&gormVersioned{ID: id}).Error
		},
		deleteRead: func(ctx context.Context, id int64) error {
			return g.WithContext(ctx).Unscoped().Clauses(clause.Returning{}).Delete(&gormVersioned{ID: id}).Error
		},
		softDelete: func(ctx context.Context, id int64) error {
			return g.WithContext(ctx).Delete(&gormVersioned{ID: id}).Error
		},
		inTx: func(ctx context.Context, f func(context.Context, ormStore) error) error {
			return g.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return f(ctx, gormStore(tx)) })
		},
	}
	if g.Name() == "mysql" {
		return s.without(readBack)
	}
	return s
}

// entStore returns a store for the client. Its transactions are stores without inTx.
func entStore(client *entstore.Client) ormStore {
	s := entBookStore(client.Book)
	s.inTx = func(ctx context.Context, f func(context.Context, ormStore) error) error {
		tx, err := client.Tx(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after Commit
		if err := f(ctx, entBookStore(tx.Book)); err != nil {
			return err
		}
		return tx.Commit()
	}
	return s
}

// entBookStore has no update with RETURNING, because ent reads an updated record back in a second statement.
func entBookStore(books *entstore.BookClient) ormStore {
	return ormStore{
		create: func(ctx context.Context, id, price int64) error {
			return books.Create().SetIsbn(ormISBN(id)).SetTitle("a title").SetPrice(price).Exec(ctx)
		},
		updates: []ormUpdate{
			{oneColumn, func(ctx context.Context, id, price int64) error {
				return books.UpdateOneID(int(id)).SetPrice(price).Exec(ctx)
			}},
			{wholeRecord, func(ctx context.Context, id, price int64) error {
				_, err := books.UpdateOneID(int(id)).SetIsbn(ormISBN(id)).SetTitle("a title").SetPrice(price).ClearDeletedAt().Save(ctx)
				return err
			}},
			{"by a predicate", func(ctx context.Context, id, price int64) error {
				_, err := books.Update().Where(book.ID(int(id))).SetPrice(price).Save(ctx)
				return err
			}},
		},
		bulk: func(ctx context.Context) error {
			_, err := books.Update().AddPrice(1).Save(ctx)
			return err
		},
		upsert: func(ctx context.Context, id, price int64) error {
			return books.Create().SetIsbn(ormISBN(id)).SetTitle("a title").SetPrice(price).
				OnConflictColumns(book.FieldIsbn).UpdateNewValues().Exec(ctx)
		},
		delete: func(ctx context.Context, id int64) error {
			return books.DeleteOneID(int(id)).Exec(ctx)
		},
		softDelete: func(ctx context.Context, id int64) error {
			return books.UpdateOneID(int(id)).SetDeletedAt(ormDeletedAt).Exec(ctx)
		},
	}
}

// bunVersioned has the serial as scan-only: bun reads it on request and never writes it. bunVersioning has the serial
// as an ordinary field.
type (
	bunVersioned struct {
		bunBook `bun:",extend"`
		Serial  int64 `bun:",scanonly"`
	}
	bunVersioning struct {
		bun.BaseModel `bun:"table:books"`

		ID     int64 `bun:",pk,autoincrement"`
		ISBN   string
		Title  string
		Price  int64
		Serial int64
	}
)

func bunStore(b bun.IDB) ormStore {
	record := func(id, price int64) *bunVersioned {
		return &bunVersioned{bunBook{ID: id, ISBN: ormISBN(id), Title: "a title", Price: price}, wrongSerial}
	}
	mysql := b.Dialect().Name() == dialect.MySQL
	bulk := func(ctx context.Context, id, price int64) error {
		_, err := b.NewUpdate().Model(&[]*bunVersioned{record(id, price)}).Column("price").Bulk().Exec(ctx)
		return err
	}
	upsert := func(id, price int64) *bun.InsertQuery {
		insert := b.NewInsert().Model(&bunVersioned{bunBook: bunBook{ISBN: ormISBN(id), Price: price}})
		if mysql {
			return insert.On("DUPLICATE KEY UPDATE").Set("price = VALUES(price)")
		}
		return insert.On("CONFLICT (isbn) DO UPDATE").Set("price = EXCLUDED.price")
	}
	s := ormStore{
		create: func(ctx context.Context, id, price int64) error {
			_, err := b.NewInsert().Model(&bunVersioned{bunBook: bunBook{ISBN: ormISBN(id), Price: price}}).Exec(ctx)
			return err
		},
		updates: []ormUpdate{
			{oneColumn, func(ctx context.Context, id, price int64) error {
				_, err := b.NewUpdate().Model(record(id, price)).Column("price").WherePK().Exec(ctx)
				return err
			}},
			{wholeRecord, func(ctx context.Context, id, price int64) error {
				_, err := b.NewUpdate().Model(record(id, price)).WherePK().Exec(ctx)
				return err
			}},
			{valuesInWith, bulk},
			{readBack, func(ctx context.Context, id, price int64) error {
				_, err := b.NewUpdate().Model(record(id, price)).Column("price").WherePK().Returning("id, serial").Exec(ctx)
				return err
			}},
		},
		bulk: func(ctx context.Context) error {
			_, err := b.NewUpdate().Model((*bunVersioned)(nil)).Set("price = price + ?", 1).Where("price > ?", 0).Exec(ctx)
			return err
		},
		upsert: func(ctx context.Context, id, price int64) error {
			_, err := upsert(id, price).Exec(ctx)
			return err
		},
		upsertAlso: func(ctx context.Context, id, price int64) error {
			_, err := upsert(id, price).Returning("NULL").Exec(ctx)
			return err
		},
		delete: func(ctx context.Context, id int64) error {
			_, err := b.NewDelete().Model(record(id, 0)).WherePK().ForceDelete().Exec(ctx)
			return err
		},
		deleteRead: func(ctx context.Context, id int64) error {
			_, err := b.NewDelete().Model(record(id, 0)).WherePK().ForceDelete().Returning("id, serial").Exec(ctx)
			return err
		},
		softDelete: func(ctx context.Context, id int64) error {
			_, err := b.NewDelete().Model(record(id, 0)).WherePK().Exec(ctx)
			return err
		},
		inTx: func(ctx context.Context, f func(context.Context, ormStore) error) error {
			return b.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error { return f(ctx, bunStore(tx)) })
		},
	}
	if !mysql {
		return s
	}
	if b.Dialect().Features().Has(feature.CTE) { // MySQL
		s.joined, s.deleteRead = bulk, nil
	}
	return s.without(readBack).without(valuesInWith)
}

// sqlxVersioned has the serial for the result of SELECT *. No statement in this file writes the serial.
type sqlxVersioned struct {
	sqlxBook
	Serial int64 `db:"serial"`
}

func sqlxStore(x *sqlx.DB) ormStore {
	s := sqlxExtStore(x)
	s.inTx = func(ctx context.Context, f func(context.Context, ormStore) error) error {
		tx, err := x.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after Commit
		if err := f(ctx, sqlxExtStore(tx)); err != nil {
			return err
		}
		return tx.Commit()
	}
	return s
}

func sqlxExtStore(x sqlx.ExtContext) ormStore {
	exec := func(ctx context.Context, query string, args ...any) error {
		_, err := x.ExecContext(ctx, x.Rebind(query), args...)
		return err
	}
	named := func(ctx context.Context, query string, id, price int64) error {
		_, err := sqlx.NamedExecContext(ctx, x, query, sqlxVersioned{sqlxBook{ID: id, ISBN: ormISBN(id), Title: "a title", Price: price}, wrongSerial})
		return err
	}
	mysql, upsert := x.DriverName() == "mysql", " ON CONFLICT (isbn) DO UPDATE SET price = excluded.price"
	if mysql {
		upsert = " ON DUPLICATE KEY UPDATE price = VALUES(price)"
	}
	s := ormStore{
		create: func(ctx context.Context, id, price int64) error { return named(ctx, sqlxInsert, id, price) },
		updates: []ormUpdate{
			{oneColumn, func(ctx context.Context, id, price int64) error {
				return exec(ctx, "UPDATE books SET price = ? WHERE id = ?", price, id)
			}},
			{wholeRecord, func(ctx context.Context, id, price int64) error {
				return named(ctx, "UPDATE books SET isbn = :isbn, title = :title, price = :price, deleted_at = :deleted_at WHERE id = :id", id, price)
			}},
			{readBack, func(ctx context.Context, id, price int64) error {
				var serial sql.NullInt64
				return sqlx.GetContext(ctx, x, &serial, x.Rebind("UPDATE books SET price = ? WHERE id = ? RETURNING serial"), price, id)
			}},
		},
		bulk: func(ctx context.Context) error {
			return exec(ctx, "UPDATE books SET price = price + ? WHERE price > ?", 1, 0)
		},
		upsertAlso: func(ctx context.Context, id, price int64) error {
			return named(ctx, sqlxInsert+upsert, id, price)
		},
		delete: func(ctx context.Context, id int64) error { return exec(ctx, "DELETE FROM books WHERE id = ?", id) },
		deleteRead: func(ctx context.Context, id int64) error {
			var serial sql.NullInt64
			return sqlx.GetContext(ctx, x, &serial, x.Rebind("DELETE FROM books WHERE id = ? RETURNING serial"), id)
		},
		softDelete: func(ctx context.Context, id int64) error {
			return exec(ctx, "UPDATE books SET deleted_at = ? WHERE id = ?", ormDeletedAt, id)
		},
	}
	if mysql {
		s.deleteRead = nil
		return s.without(readBack)
	}
	return s
}
