package orm_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/feature"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/schema"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

var bunORM = orm{
	name: "bun",
	modules: []string{"github.com/uptrace/bun", "github.com/uptrace/bun/dialect/pgdialect", "github.com/uptrace/bun/dialect/sqlitedialect",
		"github.com/uptrace/bun/dialect/mysqldialect"},
	bases: ormBases,
	open: func(_ testing.TB, db *ormDB) ormActions {
		open := openBun(db)
		all := bunActions{open}.all()
		if db.mysql() { // no UPDATE … RETURNING
			delete(all, opReturning)
		}
		if !open.HasFeature(feature.CTE) { // MariaDB
			delete(all, opBulkRecords)
		}
		return all
	},
}

// A bunBook doesn't have the fence column.
type bunBook struct {
	bun.BaseModel `bun:"table:books,alias:b"`

	ID        int64 `bun:",pk,autoincrement"`
	ISBN      string
	Title     string
	Price     int64
	PrequelID *int64
	DeletedAt time.Time  `bun:",soft_delete,nullzero"`
	Sequels   []*bunBook `bun:"rel:has-many,join:id=prequel_id"`
}

// A bunMarked book has the fence column as scan-only: bun reads it on request and never writes it. A bunMarking book
// has the fence column as an ordinary field, so an update of the model writes it.
type (
	bunMarked struct {
		bun.BaseModel `bun:"table:books"`

		ID         int64 `bun:",pk"`
		Price      int64
		FenceToken int64 `bun:",scanonly"`
	}
	bunMarking struct {
		bun.BaseModel `bun:"table:books"`

		ID         int64 `bun:",pk"`
		Price      int64
		FenceToken int64
	}
)

func openBun(db *ormDB) *bun.DB {
	var dialect schema.Dialect = sqlitedialect.New()
	switch {
	case db.postgres():
		dialect = pgdialect.New()
	case db.mysql():
		dialect = mysqldialect.New()
	}
	return bun.NewDB(db.DB, dialect)
}

type bunActions struct{ db *bun.DB }

func (a bunActions) all() ormActions {
	return ormActions{
		opRead:        a.read,
		opEager:       a.eager,
		opNotFound:    a.notFound,
		opCreate:      a.create,
		opCreateBatch: a.createBatch,
		opUnique:      a.unique,
		opUpdate:      func(ctx context.Context) (any, error) { return a.setPrice(ctx, a.db, 2) },
		opText:        a.text,
		opReturning:   a.returning,
		opMissing:     func(ctx context.Context) (any, error) { return a.setPrice(ctx, a.db, 99) },
		opSave:        a.save,
		opSaveMarked:  a.saveMarked,
		opSaveMark:    a.saveMarking,
		opBulk:        a.bulk,
		opBulkRecords: a.bulkRecords,
		opIgnore:      a.ignore,
		opUpsert:      a.upsert,
		opDelete:      a.delete,
		opSoftDelete:  a.softDelete,
		opCommit:      func(ctx context.Context) (any, error) { return nil, a.transaction(ctx, nil) },
		opRollback:    func(ctx context.Context) (any, error) { return nil, a.transaction(ctx, errORMRollback) },
		opNested:      a.nested,
		opPrepared:    a.prepared,
	}
}

func bunSeen(all ...bunBook) []ormBook {
	var seen []ormBook
	for _, b := range all {
		book := ormBook{ID: b.ID, ISBN: b.ISBN, Title: b.Title, Price: b.Price, Deleted: !b.DeletedAt.IsZero()}
		for _, s := range b.Sequels {
			book.Sequels += s.ISBN
		}
		seen = append(seen, book)
	}
	return seen
}

func (a bunActions) read(ctx context.Context) (any, error) {
	var all []bunBook
	err := a.db.NewSelect().Model(&all).Where("price > ?", 10).Order("id").Scan(ctx)
	return bunSeen(all...), err
}

func (a bunActions) eager(ctx context.Context) (any, error) {
	var all []bunBook
	err := a.db.NewSelect().Model(&all).Relation("Sequels").Order("id").Scan(ctx)
	return bunSeen(all...), err
}

func (a bunActions) notFound(ctx context.Context) (any, error) {
	err := a.db.NewSelect().Model(new(bunBook)).Where("id = ?", 99).Scan(ctx)
	return errors.Is(err, sql.ErrNoRows), err
}

func (a bunActions) create(ctx context.Context) (any, error) {
	b := bunBook{ISBN: "i4", Title: "four", Price: 40}
	n, err := harness.Affected(a.db.NewInsert().Model(&b).Exec(ctx))
	return fmt.Sprint(n, bunSeen(b)), err
}

func (a bunActions) createBatch(ctx context.Context) (any, error) {
	all := []bunBook{{ISBN: "i4", Title: "four", Price: 40}, {ISBN: "i5", Title: "five", Price: 50}}
	n, err := harness.Affected(a.db.NewInsert().Model(&all).Exec(ctx))
	return fmt.Sprint(n, bunSeen(all...)), err
}

func (a bunActions) unique(ctx context.Context) (any, error) {
	_, err := a.db.NewInsert().Model(&bunBook{ISBN: "i1", Title: "again", Price: 1}).Exec(ctx)
	return ormCode(err), err
}

func (a bunActions) setPrice(ctx context.Context, db bun.IDB, id int64) (any, error) {
	return harness.Affected(db.NewUpdate().Model(&bunBook{ID: id, Price: 21}).Column("price").WherePK().Exec(ctx))
}

func (a bunActions) text(ctx context.Context) (any, error) {
	return harness.Affected(a.db.NewUpdate().Model(&bunBook{ID: 2, Title: ormText}).Column("title").WherePK().Exec(ctx))
}

func (a bunActions) returning(ctx context.Context) (any, error) {
	b := bunBook{ID: 2, Price: 21}
	n, err := harness.Affected(a.db.NewUpdate().Model(&b).Column("price").WherePK().Returning("id, isbn, title").Exec(ctx))
	return fmt.Sprint(n, bunSeen(b)), err
}

func (a bunActions) save(ctx context.Context) (any, error) {
	b := bunBook{ID: 2}
	if err := a.db.NewSelect().Model(&b).WherePK().Scan(ctx); err != nil {
		return nil, err
	}
	b.Price, b.Title = 21, "second"
	n, err := harness.Affected(a.db.NewUpdate().Model(&b).WherePK().Exec(ctx))
	return fmt.Sprint(n, bunSeen(b)), err
}

func (a bunActions) saveMarked(ctx context.Context) (any, error) {
	b := bunMarked{ID: 2}
	if err := a.db.NewSelect().Model(&b).ColumnExpr("?TableColumns, fence_token").WherePK().Scan(ctx); err != nil {
		return nil, err
	}
	b.Price = 21
	n, err := harness.Affected(a.db.NewUpdate().Model(&b).WherePK().Exec(ctx))
	return fmt.Sprint(n, b.FenceToken), err
}

func (a bunActions) saveMarking(ctx context.Context) (any, error) {
	b := bunMarking{ID: 2}
	if err := a.db.NewSelect().Model(&b).WherePK().Scan(ctx); err != nil {
		return nil, err
	}
	b.Price = 21
	return harness.Affected(a.db.NewUpdate().Model(&b).WherePK().Exec(ctx))
}

func (a bunActions) bulk(ctx context.Context) (any, error) {
	return harness.Affected(a.db.NewUpdate().Model((*bunBook)(nil)).Set("price = price + ?", 1).Where("price >= ?", 20).Exec(ctx))
}

// bulkRecords updates several records with different values in one statement: an UPDATE that joins a list of values in
// WITH.
func (a bunActions) bulkRecords(ctx context.Context) (any, error) {
	all := []bunBook{{ID: 1, Price: 11}, {ID: 3, Price: 31}}
	return harness.Affected(a.db.NewUpdate().Model(&all).Column("price").Bulk().Exec(ctx))
}

func (a bunActions) ignore(ctx context.Context) (any, error) {
	all := []bunBook{{ISBN: "i1", Title: "uno", Price: 11}, {ISBN: "i4", Title: "four", Price: 40}}
	insert := a.db.NewInsert().Model(&all).Returning("NULL")
	if a.db.HasFeature(feature.InsertOnDuplicateKey) {
		return harness.Affected(insert.Ignore().Exec(ctx))
	}
	return harness.Affected(insert.On("CONFLICT DO NOTHING").Exec(ctx))
}

func (a bunActions) upsert(ctx context.Context) (any, error) {
	all := []bunBook{{ISBN: "i1", Title: "uno", Price: 11}, {ISBN: "i4", Title: "four", Price: 40}}
	insert := a.db.NewInsert().Model(&all)
	if a.db.HasFeature(feature.InsertOnDuplicateKey) {
		insert = insert.On("DUPLICATE KEY UPDATE").Set("title = VALUES(title), price = VALUES(price)")
	} else {
		insert = insert.On("CONFLICT (isbn) DO UPDATE").Set("title = EXCLUDED.title, price = EXCLUDED.price")
	}
	n, err := harness.Affected(insert.Exec(ctx))
	return fmt.Sprint(n, bunSeen(all...)), err
}

func (a bunActions) delete(ctx context.Context) (any, error) {
	return harness.Affected(a.db.NewDelete().Model(&bunBook{ID: 3}).WherePK().ForceDelete().Exec(ctx))
}

func (a bunActions) softDelete(ctx context.Context) (any, error) {
	return harness.Affected(a.db.NewDelete().Model(&bunBook{ID: 3}).WherePK().Exec(ctx))
}

// transaction writes and then returns end; it commits if end is nil.
func (a bunActions) transaction(ctx context.Context, end error) error {
	return a.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if _, err := a.setPrice(ctx, tx, 2); err != nil {
			return err
		}
		if _, err := tx.NewDelete().Model(&bunBook{ID: 3}).WherePK().ForceDelete().Exec(ctx); err != nil {
			return err
		}
		return end
	})
}

func (a bunActions) nested(ctx context.Context) (any, error) {
	return nil, a.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if _, err := a.setPrice(ctx, tx, 2); err != nil {
			return err
		}
		inner := tx.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			if _, err := a.setPrice(ctx, tx, 3); err != nil {
				return err
			}
			return errORMRollback
		})
		if inner != errORMRollback {
			return inner
		}
		_, err := a.setPrice(ctx, tx, 1)
		return err
	})
}

// prepared uses a prepared statement of database/sql, because bun puts the values into the SQL of its own queries.
func (a bunActions) prepared(ctx context.Context) (any, error) {
	query := "UPDATE books SET price = $1 WHERE id = $2"
	if a.db.HasFeature(feature.InsertOnDuplicateKey) {
		query = "UPDATE books SET price = ? WHERE id = ?"
	}
	update, err := a.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer update.Close()
	for price := range 3 {
		if _, err := update.ExecContext(ctx, 21+price, 2); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
