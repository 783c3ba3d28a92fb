package orm_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/doug-martin/goqu/v9"
	_ "github.com/doug-martin/goqu/v9/dialect/mysql"
	_ "github.com/doug-martin/goqu/v9/dialect/postgres"
	_ "github.com/doug-martin/goqu/v9/dialect/sqlite3"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

var goquORM = orm{
	name:    "goqu",
	modules: []string{"github.com/doug-martin/goqu/v9"},
	bases:   ormBases,
	open: func(_ testing.TB, db *ormDB) ormActions {
		return goquActions{openGoqu(db), db.postgres()}.all()
	},
}

func openGoqu(db *ormDB) *goqu.Database {
	return goqu.New(db.dialectName("postgres", "sqlite3", "mysql"), db.DB)
}

// A goquBook has the fence column, which goqu reads and never writes. A goquMarking book has the fence column as an
// ordinary field, so an update of the record writes it.
type (
	goquBook struct {
		ID         int64         `db:"id" goqu:"skipinsert,skipupdate"`
		ISBN       string        `db:"isbn"`
		Title      string        `db:"title"`
		Price      int64         `db:"price"`
		DeletedAt  sql.NullTime  `db:"deleted_at"`
		FenceToken sql.NullInt64 `db:"fence_token" goqu:"skipinsert,skipupdate"`
	}
	goquMarked struct {
		Price      int64 `db:"price"`
		FenceToken int64 `db:"fence_token" goqu:"skipupdate"`
	}
	goquMarking struct {
		Price      int64 `db:"price"`
		FenceToken int64 `db:"fence_token"`
	}
)

func newGoquBook(b ormBook) goquBook { return goquBook{ISBN: b.ISBN, Title: b.Title, Price: b.Price} }

func (b goquBook) seen() ormBook {
	return ormBook{ID: b.ID, ISBN: b.ISBN, Title: b.Title, Price: b.Price, Deleted: b.DeletedAt.Valid}
}

// A goquRunner is goqu's database or a transaction of it.
type goquRunner interface {
	Update(table any) *goqu.UpdateDataset
	Delete(table any) *goqu.DeleteDataset
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

type goquActions struct {
	db        *goqu.Database
	returning bool // goqu supports RETURNING on this database
}

func (g goquActions) all() ormActions {
	all := ormActions{
		opRead:        g.read,
		opEager:       g.eager,
		opNotFound:    g.notFound,
		opCreate:      func(ctx context.Context) (any, error) { return g.insert(ctx, ormNew[:1], nil) },
		opCreateBatch: func(ctx context.Context) (any, error) { return g.insert(ctx, ormNew, nil) },
		opUnique:      g.unique,
		opText:        func(ctx context.Context) (any, error) { return g.set(ctx, 2, goqu.Record{"title": ormText}) },
		opSave:        g.save,
		opSaveMarked:  g.saveMarked,
		opSaveMark: func(ctx context.Context) (any, error) {
			return g.set(ctx, 2, goquMarking{Price: 21, FenceToken: ormMark})
		},
		opBulk:        g.bulk,
		opBulkRecords: g.bulkRecords,
		opIgnore: func(ctx context.Context) (any, error) {
			return g.insert(ctx, ormConflicting, func(q *goqu.InsertDataset) *goqu.InsertDataset { return q.OnConflict(goqu.DoNothing()) })
		},
		opUpsert: func(ctx context.Context) (any, error) {
			set := goqu.Record{"title": goqu.L("excluded.title"), "price": goqu.L("excluded.price")}
			if g.db.Dialect() == "mysql" {
				set = goqu.Record{"title": goqu.L("VALUES(title)"), "price": goqu.L("VALUES(price)")}
			}
			return g.insert(ctx, ormConflicting, func(q *goqu.InsertDataset) *goqu.InsertDataset { return q.OnConflict(goqu.DoUpdate("isbn", set)) })
		},
		opSoftDelete: func(ctx context.Context) (any, error) { return g.set(ctx, 3, goqu.Record{"deleted_at": ormDeletedAt}) },
		opPrepared:   g.prepared,
	}
	if g.returning {
		all[opReturning] = g.updateReturning
	}
	return ormWrites[goquRunner]{
		database: func(context.Context) goquRunner { return g.db },
		setPrice: func(ctx context.Context, by goquRunner, id, price int64) (any, error) {
			return harness.Affected(by.Update("books").Set(goqu.Record{"price": price}).Where(goqu.C("id").Eq(id)).Executor().ExecContext(ctx))
		},
		remove: func(ctx context.Context, by goquRunner, id int64) (any, error) {
			return harness.Affected(by.Delete("books").Where(goqu.C("id").Eq(id)).Executor().ExecContext(ctx))
		},
		transaction: func(ctx context.Context, do func(goquRunner) error) error {
			tx, err := g.db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			return tx.Wrap(func() error { return do(tx) })
		},
		exec: func(ctx context.Context, by goquRunner, query string) error {
			_, err := by.ExecContext(ctx, query)
			return err
		},
	}.actions(all)
}

func (g goquActions) book(id int64) goqu.Expression { return goqu.C("id").Eq(id) }

func (g goquActions) set(ctx context.Context, id int64, values any) (any, error) {
	return harness.Affected(g.db.Update("books").Set(values).Where(g.book(id)).Executor().ExecContext(ctx))
}

func (g goquActions) read(ctx context.Context) (any, error) {
	var all []goquBook
	err := g.db.From("books").Where(goqu.C("price").Gt(10)).Order(goqu.C("id").Asc()).ScanStructsContext(ctx, &all)
	return ormMap(all, goquBook.seen), err
}

func (g goquActions) eager(ctx context.Context) (any, error) {
	var all []struct {
		ID     int64  `db:"id"`
		Sequel string `db:"sequel"`
	}
	err := g.db.From(goqu.T("books").As("b")).Join(goqu.T("books").As("s"), goqu.On(goqu.I("s.prequel_id").Eq(goqu.I("b.id")))).
		Select(goqu.I("b.id"), goqu.I("s.isbn").As("sequel")).ScanStructsContext(ctx, &all)
	return fmt.Sprint(all), err
}

// notFound returns an error of the test, because goqu reports a missing record as false without an error.
func (g goquActions) notFound(ctx context.Context) (any, error) {
	found, err := g.db.From("books").Where(g.book(99)).ScanStructContext(ctx, new(goquBook))
	if err == nil && !found {
		err = sql.ErrNoRows
	}
	return found, err
}

func (g goquActions) insert(ctx context.Context, all []ormBook, more func(*goqu.InsertDataset) *goqu.InsertDataset) (any, error) {
	q := g.db.Insert("books").Rows(ormMap(all, newGoquBook))
	if more != nil {
		q = more(q)
	} else if g.returning {
		var ids []int64
		err := q.Returning("id").Executor().ScanValsContext(ctx, &ids)
		return ids, err
	}
	return harness.Affected(q.Executor().ExecContext(ctx))
}

func (g goquActions) unique(ctx context.Context) (any, error) {
	_, err := g.db.Insert("books").Rows(newGoquBook(ormAgain)).Executor().ExecContext(ctx)
	return ormCode(err), err
}

func (g goquActions) updateReturning(ctx context.Context) (any, error) {
	var b goquBook
	_, err := g.db.Update("books").Set(goqu.Record{"price": 21}).Where(g.book(2)).Returning(goquBook{}).Executor().ScanStructContext(ctx, &b)
	return b.seen(), err
}

func (g goquActions) save(ctx context.Context) (any, error) {
	var b goquBook
	if _, err := g.db.From("books").Where(g.book(2)).ScanStructContext(ctx, &b); err != nil {
		return nil, err
	}
	b.Price, b.Title = 21, "second"
	return g.set(ctx, 2, b)
}

func (g goquActions) saveMarked(ctx context.Context) (any, error) {
	var b goquMarked
	if _, err := g.db.From("books").Where(g.book(2)).ScanStructContext(ctx, &b); err != nil {
		return nil, err
	}
	b.Price = 21
	n, err := g.set(ctx, 2, b)
	return fmt.Sprint(n, b.FenceToken), err
}

func (g goquActions) bulk(ctx context.Context) (any, error) {
	return harness.Affected(g.db.Update("books").Set(goqu.Record{"price": goqu.L("price + 1")}).Where(goqu.C("price").Gte(20)).Executor().ExecContext(ctx))
}

func (g goquActions) bulkRecords(ctx context.Context) (any, error) {
	price := goqu.Case().Value(goqu.C("id")).When(1, 11).When(3, 31)
	return harness.Affected(g.db.Update("books").Set(goqu.Record{"price": price}).Where(goqu.C("id").In(1, 3)).Executor().ExecContext(ctx))
}

// prepared prepares SQL that goqu has built with placeholders. By default goqu puts the values into the SQL.
func (g goquActions) prepared(ctx context.Context) (any, error) {
	query, args, err := g.db.Update("books").Prepared(true).Set(goqu.Record{"price": 21}).Where(g.book(2)).ToSQL()
	if err != nil {
		return nil, err
	}
	update, err := g.db.Prepare(query)
	if err != nil {
		return nil, err
	}
	defer update.Close()
	for range 3 {
		if _, err := update.ExecContext(ctx, args...); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
