package orm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	gormmysql "gorm.io/driver/mysql"
	gormpostgres "gorm.io/driver/postgres"
	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

var gormORM = orm{
	name:    "gorm",
	modules: []string{"gorm.io/gorm", "gorm.io/driver/postgres", "gorm.io/driver/sqlite", "gorm.io/driver/mysql"},
	bases:   ormBases,
	open: func(t testing.TB, db *ormDB) ormActions {
		return gormActions{openGorm(t, db)}.on(db)
	},
}

// gormPreparedORM is gorm with PrepareStmt, which prepares every statement and caches the prepared statement.
var gormPreparedORM = orm{
	name: "gorm, PrepareStmt", modules: gormORM.modules[:1], bases: []string{"pgx", "mattn", "mysql"},
	open: func(t testing.TB, db *ormDB) ormActions {
		return gormActions{openGorm(t, db).Session(&gorm.Session{PrepareStmt: true})}.on(db)
	},
}

// A gormBook doesn't have the fence column.
type gormBook struct {
	ID        int64
	ISBN      string `gorm:"unique"`
	Title     string
	Price     int64
	PrequelID *int64
	DeletedAt gorm.DeletedAt
	Sequels   []gormBook `gorm:"foreignKey:PrequelID"`
}

// A gormMarked book has the fence column as read-only. A gormMarking book has the fence column as an ordinary field, so
// Save writes it.
type (
	gormMarked struct {
		ID         int64
		Title      string
		Price      int64
		FenceToken *int64 `gorm:"->"`
	}
	gormMarking struct {
		ID         int64
		Title      string
		Price      int64
		FenceToken *int64
	}
)

func (gormBook) TableName() string { return "books" }

func (gormMarked) TableName() string { return "books" }

func (gormMarking) TableName() string { return "books" }

func openGorm(t testing.TB, db *ormDB) *gorm.DB {
	t.Helper()
	var dialector gorm.Dialector = gormsqlite.New(gormsqlite.Config{Conn: db.DB})
	switch {
	case db.mysql():
		dialector = gormmysql.New(gormmysql.Config{Conn: db.DB})
	case db.postgres():
		// With Conn set, gorm doesn't open DriverName. AutoMigrate reads DriverName: unless it is pgx, AutoMigrate
		// omits an argument that only pgx accepts.
		dialector = gormpostgres.New(gormpostgres.Config{Conn: db.DB, DriverName: db.DriverName})
	}
	g, err := gorm.Open(dialector, &gorm.Config{
		TranslateError: true,
		Logger:         logger.Discard,
		NowFunc:        func() time.Time { return ormDeletedAt },
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

type gormActions struct{ db *gorm.DB }

// on returns the operations without those that MySQL doesn't support.
func (g gormActions) on(db *ormDB) ormActions {
	all := g.all()
	if db.mysql() {
		delete(all, opReturning)
	}
	return all
}

func (g gormActions) all() ormActions {
	return ormActions{
		opRead:        g.read,
		opEager:       g.eager,
		opNotFound:    g.notFound,
		opCreate:      g.create,
		opCreateBatch: g.createBatch,
		opUnique:      g.unique,
		opUpdate:      g.update,
		opText:        g.text,
		opReturning:   g.returning,
		opMissing:     g.missing,
		opSave:        g.save,
		opSaveMarked:  g.saveMarked,
		opSaveMark:    g.saveMarking,
		opSaveTree:    g.saveTree,
		opSaveNew:     g.saveNew,
		opBulk:        g.bulk,
		opIgnore:      g.ignore,
		opUpsert:      g.upsert,
		opDelete:      g.delete,
		opSoftDelete:  g.softDelete,
		opCommit:      g.commit,
		opRollback:    g.rollback,
		opNested:      g.nested,
		opPrepared:    g.prepared,
	}
}

func gormSeen(all ...gormBook) []ormBook {
	var seen []ormBook
	for _, b := range all {
		book := ormBook{ID: b.ID, ISBN: b.ISBN, Title: b.Title, Price: b.Price, Deleted: b.DeletedAt.Valid}
		for _, s := range b.Sequels {
			book.Sequels += s.ISBN
		}
		seen = append(seen, book)
	}
	return seen
}

func (g gormActions) read(ctx context.Context) (any, error) {
	var all []gormBook
	err := g.db.WithContext(ctx).Where("price > ?", 10).Order("id").Find(&all).Error
	return gormSeen(all...), err
}

func (g gormActions) eager(ctx context.Context) (any, error) {
	var all []gormBook
	err := g.db.WithContext(ctx).Preload("Sequels").Order("id").Find(&all).Error
	return gormSeen(all...), err
}

func (g gormActions) notFound(ctx context.Context) (any, error) {
	err := g.db.WithContext(ctx).First(new(gormBook), 99).Error
	return errors.Is(err, gorm.ErrRecordNotFound), err
}

func (g gormActions) create(ctx context.Context) (any, error) {
	b := gormBook{ISBN: "i4", Title: "four", Price: 40}
	err := g.db.WithContext(ctx).Create(&b).Error
	return gormSeen(b), err
}

func (g gormActions) createBatch(ctx context.Context) (any, error) {
	all := []gormBook{{ISBN: "i4", Title: "four", Price: 40}, {ISBN: "i5", Title: "five", Price: 50}}
	err := g.db.WithContext(ctx).Create(&all).Error
	return gormSeen(all...), err
}

func (g gormActions) unique(ctx context.Context) (any, error) {
	err := g.db.WithContext(ctx).Create(&gormBook{ISBN: "i1", Title: "again", Price: 1}).Error
	return fmt.Sprint(errors.Is(err, gorm.ErrDuplicatedKey), harness.SQLState(err)), err
}

func (g gormActions) update(ctx context.Context) (any, error) {
	res := g.db.WithContext(ctx).Model(&gormBook{ID: 2}).Update("price", 21)
	return res.RowsAffected, res.Error
}

func (g gormActions) text(ctx context.Context) (any, error) {
	res := g.db.WithContext(ctx).Model(&gormBook{ID: 2}).Updates(gormBook{Title: ormText, Price: 21})
	return res.RowsAffected, res.Error
}

func (g gormActions) returning(ctx context.Context) (any, error) {
	var b gormBook
	err := g.db.WithContext(ctx).Model(&b).Clauses(clause.Returning{}).Where("id = ?", 2).Update("price", 21).Error
	return gormSeen(b), err
}

func (g gormActions) missing(ctx context.Context) (any, error) {
	res := g.db.WithContext(ctx).Model(&gormBook{ID: 99}).Update("price", 21)
	return res.RowsAffected, res.Error
}

func (g gormActions) save(ctx context.Context) (any, error) {
	var b gormBook
	if err := g.db.WithContext(ctx).First(&b, 2).Error; err != nil {
		return nil, err
	}
	b.Price, b.Title = 21, "second"
	res := g.db.WithContext(ctx).Save(&b)
	return fmt.Sprint(gormSeen(b), res.RowsAffected), res.Error
}

func (g gormActions) saveMarked(ctx context.Context) (any, error) {
	var b gormMarked
	if err := g.db.WithContext(ctx).First(&b, 2).Error; err != nil {
		return nil, err
	}
	b.Price = 21
	res := g.db.WithContext(ctx).Save(&b)
	return fmt.Sprint(*b.FenceToken, res.RowsAffected), res.Error
}

func (g gormActions) saveMarking(ctx context.Context) (any, error) {
	var b gormMarking
	if err := g.db.WithContext(ctx).First(&b, 2).Error; err != nil {
		return nil, err
	}
	b.Price = 21
	res := g.db.WithContext(ctx).Save(&b)
	return res.RowsAffected, res.Error
}

func (g gormActions) saveTree(ctx context.Context) (any, error) {
	var b gormBook
	if err := g.db.WithContext(ctx).Preload("Sequels", func(s *gorm.DB) *gorm.DB { return s.Order("id") }).First(&b, 1).Error; err != nil {
		return nil, err
	}
	b.Price, b.Sequels[0].Price = 11, 21
	b.Sequels = append(b.Sequels, gormBook{ID: 4, ISBN: "i4", Title: "four", Price: 40})
	err := g.db.WithContext(ctx).Session(&gorm.Session{FullSaveAssociations: true}).Save(&b).Error
	return gormSeen(append(b.Sequels, b)...), err
}

// saveNew saves a new record with a primary key: gorm sends an UPDATE first, then INSERT ... ON CONFLICT DO UPDATE.
func (g gormActions) saveNew(ctx context.Context) (any, error) {
	b := gormBook{ID: 5, ISBN: "i5", Title: "five", Price: 50}
	res := g.db.WithContext(ctx).Save(&b)
	return res.RowsAffected, res.Error
}

func (g gormActions) bulk(ctx context.Context) (any, error) {
	res := g.db.WithContext(ctx).Model(&gormBook{}).Where("price >= ?", 20).Updates(map[string]any{"price": gorm.Expr("price + ?", 1)})
	return res.RowsAffected, res.Error
}

func (g gormActions) ignore(ctx context.Context) (any, error) {
	all := []gormBook{{ISBN: "i1", Title: "uno", Price: 11}, {ISBN: "i4", Title: "four", Price: 40}}
	res := g.db.WithContext(ctx).Clauses(clause.OnConflict{DoNothing: true}).Create(&all)
	return res.RowsAffected, res.Error
}

func (g gormActions) upsert(ctx context.Context) (any, error) {
	all := []gormBook{{ISBN: "i1", Title: "uno", Price: 11}, {ISBN: "i4", Title: "four", Price: 40}}
	err := g.db.WithContext(ctx).Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "isbn"}},
		DoUpdates: clause.AssignmentColumns([]string{"title", "price"}),
	}).Create(&all).Error
	return gormSeen(all...), err
}

func (g gormActions) delete(ctx context.Context) (any, error) {
	res := g.db.WithContext(ctx).Unscoped().Delete(&gormBook{}, 3)
	return res.RowsAffected, res.Error
}

func (g gormActions) softDelete(ctx context.Context) (any, error) {
	res := g.db.WithContext(ctx).Delete(&gormBook{ID: 3})
	return res.RowsAffected, res.Error
}

func (g gormActions) commit(ctx context.Context) (any, error) {
	return nil, g.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Model(&gormBook{ID: 2}).Update("price", 21).Error; err != nil {
			return err
		}
		return tx.Unscoped().Delete(&gormBook{}, 3).Error
	})
}

func (g gormActions) rollback(ctx context.Context) (any, error) {
	return nil, g.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Model(&gormBook{ID: 2}).Update("price", 21).Error; err != nil {
			return err
		}
		if err := tx.Unscoped().Delete(&gormBook{}, 3).Error; err != nil {
			return err
		}
		return errORMRollback
	})
}

func (g gormActions) nested(ctx context.Context) (any, error) {
	return nil, g.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Model(&gormBook{ID: 2}).Update("price", 21).Error; err != nil {
			return err
		}
		inner := tx.Transaction(func(tx *gorm.DB) error {
			if err := tx.Model(&gormBook{ID: 3}).Update("price", 31).Error; err != nil {
				return err
			}
			return errORMRollback
		})
		if inner != errORMRollback {
			return inner
		}
		return tx.Model(&gormBook{ID: 1}).Update("price", 11).Error
	})
}

// prepared uses gorm's PrepareStmt, which caches a prepared statement for each SQL string.
func (g gormActions) prepared(ctx context.Context) (any, error) {
	db := g.db.WithContext(ctx).Session(&gorm.Session{PrepareStmt: true})
	for price := range 3 {
		if err := db.Model(&gormBook{ID: 2}).Update("price", 21+price).Error; err != nil {
			return nil, err
		}
	}
	var b gormBook
	err := db.First(&b, 2).Error
	return gormSeen(b), err
}
