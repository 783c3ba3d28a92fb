package orm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"xorm.io/xorm"
	"xorm.io/xorm/core"
	"xorm.io/xorm/log"
)

var xormORM = orm{
	name:    "xorm",
	modules: []string{"xorm.io/xorm"},
	bases:   ormBases,
	open: func(t testing.TB, db *ormDB) ormActions {
		return xormActions{openXorm(t, db)}.all()
	},
}

// openXorm passes the driver's name, from which xorm derives the dialect.
func openXorm(t testing.TB, db *ormDB) *xorm.Engine {
	t.Helper()
	engine, err := xorm.NewEngineWithDB(db.DriverName, db.source, core.FromDB(db.DB))
	if err != nil {
		t.Fatal(err)
	}
	engine.SetLogLevel(log.LOG_OFF)
	// xorm closes the database when it finalizes an engine. The cleanup keeps the engine alive, because tests read the
	// database later.
	t.Cleanup(func() { _ = engine.Close() })
	return engine
}

// A xormBook doesn't have the fence column.
type xormBook struct {
	ID        int64  `xorm:"'id' pk autoincr"`
	ISBN      string `xorm:"'isbn'"`
	Title     string
	Price     int64
	PrequelID *int64    `xorm:"'prequel_id'"`
	DeletedAt time.Time `xorm:"deleted"`
}

// A xormMarked book has the fence column as read-only. A xormMarking book has the fence column as an ordinary field, so
// an update of all columns writes it.
type (
	xormMarked struct {
		ID         int64 `xorm:"'id' pk autoincr"`
		Price      int64
		FenceToken int64 `xorm:"<-"`
	}
	xormMarking struct {
		ID         int64 `xorm:"'id' pk autoincr"`
		Price      int64
		FenceToken int64
	}
)

func (xormBook) TableName() string { return "books" }

func (xormMarked) TableName() string { return "books" }

func (xormMarking) TableName() string { return "books" }

func newXormBook(b ormBook) xormBook { return xormBook{ISBN: b.ISBN, Title: b.Title, Price: b.Price} }

func (b xormBook) seen() ormBook {
	return ormBook{ID: b.ID, ISBN: b.ISBN, Title: b.Title, Price: b.Price, Deleted: !b.DeletedAt.IsZero()}
}

type xormActions struct{ engine *xorm.Engine }

func (x xormActions) all() ormActions {
	return ormWrites[*xorm.Session]{
		database: func(ctx context.Context) *xorm.Session { return x.engine.Context(ctx) },
		setPrice: func(_ context.Context, s *xorm.Session, id, price int64) (any, error) {
			return s.ID(id).Cols("price").Update(&xormBook{Price: price})
		},
		remove: func(_ context.Context, s *xorm.Session, id int64) (any, error) {
			return s.ID(id).Unscoped().Delete(new(xormBook))
		},
		transaction: x.transaction,
		exec: func(_ context.Context, s *xorm.Session, query string) error {
			_, err := s.Exec(query)
			return err
		},
	}.actions(ormActions{
		opRead:        x.read,
		opEager:       x.eager,
		opNotFound:    x.notFound,
		opCreate:      x.create,
		opCreateBatch: x.createBatch,
		opUnique:      x.unique,
		opText:        x.text,
		opSave:        x.save,
		opSaveMarked:  x.saveMarked,
		opSaveMark:    x.saveMarking,
		opBulk:        x.bulk,
		opSoftDelete:  func(ctx context.Context) (any, error) { return x.engine.Context(ctx).ID(3).Delete(new(xormBook)) },
		opPrepared:    x.prepared,
	})
}

func (x xormActions) read(ctx context.Context) (any, error) {
	var all []xormBook
	err := x.engine.Context(ctx).Where("price > ?", 10).Asc("id").Find(&all)
	return ormMap(all, xormBook.seen), err
}

// eager uses a join, because xorm doesn't load associations.
func (x xormActions) eager(ctx context.Context) (any, error) {
	var all []struct {
		xormBook `xorm:"extends"`
		Sequel   string
	}
	err := x.engine.Context(ctx).Table("books").Alias("b").Select("b.*, s.isbn AS sequel").
		Join("INNER", []string{"books", "s"}, "s.prequel_id = b.id").Find(&all)
	var seen []ormBook
	for _, b := range all {
		book := b.seen()
		book.Sequels = b.Sequel
		seen = append(seen, book)
	}
	return seen, err
}

func (x xormActions) notFound(ctx context.Context) (any, error) {
	err := x.engine.Context(ctx).ID(99).GetOrError(new(xormBook))
	return errors.Is(err, xorm.ErrNotExist), err
}

func (x xormActions) create(ctx context.Context) (any, error) {
	b := newXormBook(ormNew[0])
	_, err := x.engine.Context(ctx).Insert(&b)
	return b.seen(), err
}

func (x xormActions) createBatch(ctx context.Context) (any, error) {
	all := ormMap(ormNew, newXormBook)
	return x.engine.Context(ctx).Insert(&all)
}

func (x xormActions) unique(ctx context.Context) (any, error) {
	b := newXormBook(ormAgain)
	_, err := x.engine.Context(ctx).Insert(&b)
	return ormCode(err), err
}

func (x xormActions) text(ctx context.Context) (any, error) {
	return x.engine.Context(ctx).ID(2).Cols("title").Update(&xormBook{Title: ormText})
}

func (x xormActions) save(ctx context.Context) (any, error) {
	var b xormBook
	if err := x.engine.Context(ctx).ID(2).GetOrError(&b); err != nil {
		return nil, err
	}
	b.Price, b.Title = 21, "second"
	n, err := x.engine.Context(ctx).ID(2).AllCols().Update(&b)
	return fmt.Sprint(n, b.seen()), err
}

func (x xormActions) saveMarked(ctx context.Context) (any, error) {
	var b xormMarked
	if err := x.engine.Context(ctx).ID(2).GetOrError(&b); err != nil {
		return nil, err
	}
	b.Price = 21
	n, err := x.engine.Context(ctx).ID(2).AllCols().Update(&b)
	return fmt.Sprint(n, b.FenceToken), err
}

func (x xormActions) saveMarking(ctx context.Context) (any, error) {
	var b xormMarking
	if err := x.engine.Context(ctx).ID(2).GetOrError(&b); err != nil {
		return nil, err
	}
	b.Price = 21
	return x.engine.Context(ctx).ID(2).AllCols().Update(&b)
}

func (x xormActions) bulk(ctx context.Context) (any, error) {
	return x.engine.Context(ctx).Where("price >= ?", 20).Incr("price").Update(new(xormBook))
}

func (x xormActions) transaction(ctx context.Context, do func(*xorm.Session) error) error {
	session := x.engine.NewSession().Context(ctx)
	defer session.Close() // rolls back what isn't committed
	if err := session.Begin(); err != nil {
		return err
	}
	if err := do(session); err != nil {
		return err
	}
	return session.Commit()
}

// prepared uses a session that caches a prepared statement for each SQL string.
func (x xormActions) prepared(ctx context.Context) (any, error) {
	session := x.engine.NewSession().Context(ctx)
	defer session.Close()
	for price := range int64(3) {
		if _, err := session.Prepare().ID(2).Cols("price").Update(&xormBook{Price: 21 + price}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
