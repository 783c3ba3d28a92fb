package orm_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/gobuffalo/pop/v6"
	"github.com/gobuffalo/pop/v6/logging"
	"github.com/jmoiron/sqlx"
)

var popORM = orm{
	name:    "pop",
	modules: []string{"github.com/gobuffalo/pop/v6"},
	bases:   ormBases,
	open: func(t testing.TB, db *ormDB) ormActions {
		return popActions{openPop(t, db)}.all()
	},
}

// openPop registers the driver under a new name, because pop opens its databases by name. It registers this name's
// placeholder style in sqlx, because pop binds arguments through sqlx.
func openPop(t testing.TB, db *ormDB) *pop.Connection {
	t.Helper()
	name := "pop_" + rand.Text()
	sql.Register(name, db.Driver())
	details := &pop.ConnectionDetails{Dialect: "sqlite3", Driver: name, URL: "sqlite3://" + db.source}
	sqlx.BindDriver(name, sqlx.QUESTION)
	switch {
	case db.mysql():
		details = &pop.ConnectionDetails{Dialect: "mysql", Driver: name, URL: "mysql://" + db.source}
	case db.postgres():
		details = &pop.ConnectionDetails{Dialect: "postgres", Driver: name, URL: db.source}
		sqlx.BindDriver(name, sqlx.DOLLAR)
	}
	c, err := pop.NewConnection(details)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func init() { pop.SetLogger(func(logging.Level, string, ...any) {}) }

// A popBook doesn't have the fence column.
type popBook struct {
	ID        int64         `db:"id"`
	ISBN      string        `db:"isbn"`
	Title     string        `db:"title"`
	Price     int64         `db:"price"`
	PrequelID sql.NullInt64 `db:"prequel_id"`
	DeletedAt sql.NullTime  `db:"deleted_at"`
	Sequels   []popBook     `has_many:"books" fk_id:"prequel_id"`
}

// A popMarked book has the fence column as read-only. A popMarking book has the fence column as an ordinary field, so
// an update of the model writes it.
type (
	popMarked struct {
		ID         int64 `db:"id"`
		Price      int64 `db:"price"`
		FenceToken int64 `db:"fence_token" rw:"r"`
	}
	popMarking struct {
		ID         int64 `db:"id"`
		Price      int64 `db:"price"`
		FenceToken int64 `db:"fence_token"`
	}
)

func (popBook) TableName() string { return "books" }

func (popMarked) TableName() string { return "books" }

func (popMarking) TableName() string { return "books" }

func newPopBook(b ormBook) popBook { return popBook{ISBN: b.ISBN, Title: b.Title, Price: b.Price} }

func (b popBook) seen() ormBook {
	book := ormBook{ID: b.ID, ISBN: b.ISBN, Title: b.Title, Price: b.Price, Deleted: b.DeletedAt.Valid}
	for _, s := range b.Sequels {
		book.Sequels += s.ISBN
	}
	return book
}

type popActions struct{ db *pop.Connection }

func (p popActions) all() ormActions {
	return ormWrites[*pop.Connection]{
		database: p.db.WithContext,
		setPrice: func(_ context.Context, c *pop.Connection, id, price int64) (any, error) {
			return nil, c.UpdateColumns(&popBook{ID: id, Price: price}, "price")
		},
		remove: func(_ context.Context, c *pop.Connection, id int64) (any, error) {
			return nil, c.Destroy(&popBook{ID: id})
		},
		transaction: func(ctx context.Context, do func(*pop.Connection) error) error {
			return p.db.WithContext(ctx).Transaction(do)
		},
		exec: func(_ context.Context, c *pop.Connection, query string) error { return c.RawQuery(query).Exec() },
	}.actions(ormActions{
		opRead:        p.read,
		opEager:       p.eager,
		opNotFound:    p.notFound,
		opCreate:      p.create,
		opCreateBatch: p.createBatch,
		opUnique:      p.unique,
		opText:        p.text,
		opSave:        p.save,
		opSaveMarked:  p.saveMarked,
		opSaveMark:    p.saveMarking,
		opBulk:        p.bulk,
		opSoftDelete:  p.softDelete,
	})
}

func (p popActions) read(ctx context.Context) (any, error) {
	var all []popBook
	err := p.db.WithContext(ctx).Where("price > ?", 10).Order("id").All(&all)
	return ormMap(all, popBook.seen), err
}

func (p popActions) eager(ctx context.Context) (any, error) {
	var all []popBook
	err := p.db.WithContext(ctx).Eager("Sequels").Order("id").All(&all)
	return ormMap(all, popBook.seen), err
}

func (p popActions) notFound(ctx context.Context) (any, error) {
	err := p.db.WithContext(ctx).Find(new(popBook), 99)
	return errors.Is(err, sql.ErrNoRows), err
}

func (p popActions) create(ctx context.Context) (any, error) {
	b := newPopBook(ormNew[0])
	err := p.db.WithContext(ctx).Create(&b)
	return b.seen(), err
}

func (p popActions) createBatch(ctx context.Context) (any, error) {
	all := ormMap(ormNew, newPopBook)
	err := p.db.WithContext(ctx).Create(&all)
	return ormMap(all, popBook.seen), err
}

func (p popActions) unique(ctx context.Context) (any, error) {
	b := newPopBook(ormAgain)
	err := p.db.WithContext(ctx).Create(&b)
	return ormCode(err), err
}

func (p popActions) text(ctx context.Context) (any, error) {
	return nil, p.db.WithContext(ctx).UpdateColumns(&popBook{ID: 2, Title: ormText}, "title")
}

func (p popActions) save(ctx context.Context) (any, error) {
	var b popBook
	if err := p.db.WithContext(ctx).Find(&b, 2); err != nil {
		return nil, err
	}
	b.Price, b.Title = 21, "second"
	return nil, p.db.WithContext(ctx).Save(&b)
}

// marked names the columns, because pop otherwise reads the columns of the first model that it has seen for the table.
func (p popActions) marked(ctx context.Context) *pop.Query {
	return p.db.WithContext(ctx).Select("id", "price", "fence_token")
}

func (p popActions) saveMarked(ctx context.Context) (any, error) {
	var b popMarked
	if err := p.marked(ctx).Find(&b, 2); err != nil {
		return nil, err
	}
	b.Price = 21
	return fmt.Sprint(b.FenceToken), p.db.WithContext(ctx).Update(&b)
}

func (p popActions) saveMarking(ctx context.Context) (any, error) {
	var b popMarking
	if err := p.marked(ctx).Find(&b, 2); err != nil {
		return nil, err
	}
	b.Price = 21
	return nil, p.db.WithContext(ctx).Update(&b)
}

func (p popActions) bulk(ctx context.Context) (any, error) {
	return p.db.WithContext(ctx).Where("price >= ?", 20).UpdateQuery(&popBook{Price: 99}, "price")
}

// softDelete updates deleted_at, because pop has no soft delete.
func (p popActions) softDelete(ctx context.Context) (any, error) {
	b := popBook{ID: 3, DeletedAt: sql.NullTime{Time: ormDeletedAt, Valid: true}}
	return nil, p.db.WithContext(ctx).UpdateColumns(&b, "deleted_at")
}
