package orm_test

import (
	"context"
	"fmt"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/sqlfence/sqlfence/test/integration/extended/orm/entstore"
	"github.com/sqlfence/sqlfence/test/integration/extended/orm/entstore/book"
)

var entORM = orm{
	name:    "ent",
	modules: []string{"entgo.io/ent"},
	bases:   ormBases,
	open: func(_ testing.TB, db *ormDB) ormActions {
		return entActions{openEnt(db)}.all()
	},
}

func openEnt(db *ormDB) *entstore.Client {
	return entstore.NewClient(entstore.Driver(entsql.OpenDB(db.dialectName(dialect.Postgres, dialect.SQLite, dialect.MySQL), db.DB)))
}

type entActions struct{ db *entstore.Client }

// all has no operation that writes the fence column, because ent writes only the fields that the application has set.
// There are no savepoints and no prepared statements, because ent doesn't support these.
func (e entActions) all() ormActions {
	return ormActions{
		opRead:        e.read,
		opEager:       e.eager,
		opNotFound:    e.notFound,
		opCreate:      e.create,
		opCreateBatch: e.createBatch,
		opUnique:      e.unique,
		opUpdate:      func(ctx context.Context) (any, error) { return e.setPrice(ctx, 2) },
		opText:        e.text,
		opMissing:     func(ctx context.Context) (any, error) { return e.setPrice(ctx, 99) },
		opSaveMarked:  e.save,
		opSaveTree:    e.saveTree,
		opBulk:        e.bulk,
		opUpsert:      e.upsert,
		opDelete:      e.delete,
		opSoftDelete:  e.softDelete,
		opCommit:      func(ctx context.Context) (any, error) { return nil, e.transaction(ctx, nil) },
		opRollback:    func(ctx context.Context) (any, error) { return nil, e.transaction(ctx, errORMRollback) },
	}
}

func entSeen(all ...*entstore.Book) []ormBook {
	var seen []ormBook
	for _, b := range all {
		if b == nil { // ent returns nil with an error
			continue
		}
		book := ormBook{ID: int64(b.ID), ISBN: b.Isbn, Title: b.Title, Price: b.Price, Deleted: b.DeletedAt != nil}
		for _, s := range b.Edges.Sequels {
			book.Sequels += s.Isbn
		}
		seen = append(seen, book)
	}
	return seen
}

func (e entActions) read(ctx context.Context) (any, error) {
	all, err := e.db.Book.Query().Where(book.PriceGT(10)).Order(book.ByID()).All(ctx)
	return entSeen(all...), err
}

func (e entActions) eager(ctx context.Context) (any, error) {
	all, err := e.db.Book.Query().WithSequels().Order(book.ByID()).All(ctx)
	return entSeen(all...), err
}

func (e entActions) notFound(ctx context.Context) (any, error) {
	_, err := e.db.Book.Get(ctx, 99)
	return entstore.IsNotFound(err), err
}

func (e entActions) create(ctx context.Context) (any, error) {
	b, err := e.four().Save(ctx)
	return entSeen(b), err
}

func (e entActions) four() *entstore.BookCreate {
	return e.db.Book.Create().SetIsbn("i4").SetTitle("four").SetPrice(40)
}

func (e entActions) createBatch(ctx context.Context) (any, error) {
	all, err := e.db.Book.CreateBulk(e.four(), e.db.Book.Create().SetIsbn("i5").SetTitle("five").SetPrice(50)).Save(ctx)
	return entSeen(all...), err
}

func (e entActions) unique(ctx context.Context) (any, error) {
	_, err := e.db.Book.Create().SetIsbn("i1").SetTitle("again").SetPrice(1).Save(ctx)
	return fmt.Sprint(entstore.IsConstraintError(err), ormCode(err)), err
}

func (e entActions) setPrice(ctx context.Context, id int) (any, error) {
	n, err := e.db.Book.Update().Where(book.ID(id)).SetPrice(21).Save(ctx)
	return n, err
}

func (e entActions) text(ctx context.Context) (any, error) {
	n, err := e.db.Book.Update().Where(book.ID(2)).SetTitle(ormText).Save(ctx)
	return n, err
}

// save updates one record. ent then reads the whole record back, with the fence column.
func (e entActions) save(ctx context.Context) (any, error) {
	b, err := e.db.Book.Get(ctx, 2)
	if err != nil {
		return nil, err
	}
	saved, err := b.Update().SetTitle("second").SetPrice(21).SetNillablePrequelID(b.PrequelID).Save(ctx)
	return fmt.Sprint(*b.FenceToken, entSeen(saved)), err
}

// saveTree writes a record and the edges to two others, in a transaction of ent's own.
func (e entActions) saveTree(ctx context.Context) (any, error) {
	b, err := e.db.Book.UpdateOneID(1).SetPrice(11).RemoveSequelIDs(2).AddSequelIDs(3).Save(ctx)
	return entSeen(b), err
}

func (e entActions) bulk(ctx context.Context) (any, error) {
	n, err := e.db.Book.Update().Where(book.PriceGTE(20)).AddPrice(1).Save(ctx)
	return n, err
}

func (e entActions) upsert(ctx context.Context) (any, error) {
	one := e.db.Book.Create().SetIsbn("i1").SetTitle("uno").SetPrice(11)
	return nil, e.db.Book.CreateBulk(one, e.four()).OnConflictColumns(book.FieldIsbn).UpdateNewValues().Exec(ctx)
}

func (e entActions) delete(ctx context.Context) (any, error) {
	n, err := e.db.Book.Delete().Where(book.ID(3)).Exec(ctx)
	return n, err
}

// softDelete writes the update that ent's soft-delete mixins produce.
func (e entActions) softDelete(ctx context.Context) (any, error) {
	b, err := e.db.Book.UpdateOneID(3).SetDeletedAt(ormDeletedAt).Save(ctx)
	return entSeen(b), err
}

// transaction writes and then returns end; it commits if end is nil.
func (e entActions) transaction(ctx context.Context, end error) error {
	tx, err := e.db.Tx(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := tx.Book.UpdateOneID(2).SetPrice(21).Exec(ctx); err != nil {
		return err
	}
	if err := tx.Book.DeleteOneID(3).Exec(ctx); err != nil {
		return err
	}
	if end != nil {
		return end
	}
	return tx.Commit()
}
