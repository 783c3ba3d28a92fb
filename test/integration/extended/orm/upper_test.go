package orm_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/upper/db/v4"
	"github.com/upper/db/v4/adapter/mysql"
	"github.com/upper/db/v4/adapter/postgresql"
	"github.com/upper/db/v4/adapter/sqlite"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

var upperORM = orm{
	name:    "upper",
	modules: []string{"github.com/upper/db/v4"},
	bases:   ormBases,
	open: func(t testing.TB, db *ormDB) ormActions {
		return upperActions{openUpper(t, db), db.mysql()}.all()
	},
}

func openUpper(t testing.TB, to *ormDB) db.Session {
	t.Helper()
	adapter := map[sqlfence.Dialect]func(*sql.DB) (db.Session, error){
		sqlfence.Postgres: postgresql.New, sqlfence.SQLite: sqlite.New, sqlfence.MySQL: mysql.New,
	}[to.Dialect]
	session, err := adapter(to.DB)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// An upperBook doesn't have the fence column. An upperMarked book has the fence column; upper/db writes it unless it is
// 0.
type (
	upperBook struct {
		ID        int64        `db:"id,omitempty"`
		ISBN      string       `db:"isbn"`
		Title     string       `db:"title"`
		Price     int64        `db:"price"`
		DeletedAt sql.NullTime `db:"deleted_at"`
	}
	upperMarked struct {
		ID         int64 `db:"id,omitempty"`
		Price      int64 `db:"price"`
		FenceToken int64 `db:"fence_token,omitempty"`
	}
)

func (*upperBook) Store(s db.Session) db.Store { return s.Collection("books") }

func (*upperMarked) Store(s db.Session) db.Store { return s.Collection("books") }

func newUpperBook(b ormBook) upperBook {
	return upperBook{ISBN: b.ISBN, Title: b.Title, Price: b.Price}
}

func (b upperBook) seen() ormBook {
	return ormBook{ID: b.ID, ISBN: b.ISBN, Title: b.Title, Price: b.Price, Deleted: b.DeletedAt.Valid}
}

type upperActions struct {
	db    db.Session
	mysql bool
}

func (u upperActions) all() ormActions {
	return ormWrites[db.Session]{
		database: u.db.WithContext,
		setPrice: func(_ context.Context, s db.Session, id, price int64) (any, error) {
			return nil, s.Collection("books").Find(id).Update(db.Cond{"price": price})
		},
		remove: func(_ context.Context, s db.Session, id int64) (any, error) {
			return nil, s.Collection("books").Find(id).Delete()
		},
		transaction: func(ctx context.Context, do func(db.Session) error) error { return u.db.TxContext(ctx, do, nil) },
		exec: func(_ context.Context, s db.Session, query string) error {
			_, err := s.SQL().Exec(query)
			return err
		},
	}.actions(ormActions{
		opRead:        u.read,
		opEager:       u.eager,
		opNotFound:    u.notFound,
		opCreate:      u.create,
		opCreateBatch: func(ctx context.Context) (any, error) { return u.insert(ctx, ormNew, nil) },
		opUnique:      u.unique,
		opText:        func(ctx context.Context) (any, error) { return u.set(ctx, 2, db.Cond{"title": ormText}) },
		opReturning:   u.returning,
		opSave:        u.save,
		opSaveMarked:  func(ctx context.Context) (any, error) { return u.saveMark(ctx, 0) },
		opSaveMark:    func(ctx context.Context) (any, error) { return u.saveMark(ctx, ormMark) },
		opSaveNew:     u.saveNew,
		opBulk:        u.bulk,
		opIgnore:      func(ctx context.Context) (any, error) { return u.insert(ctx, ormConflicting, ormIgnoring(u.mysql)) },
		opUpsert:      func(ctx context.Context) (any, error) { return u.insert(ctx, ormConflicting, ormUpserting(u.mysql)) },
		opSoftDelete:  func(ctx context.Context) (any, error) { return u.set(ctx, 3, db.Cond{"deleted_at": ormDeletedAt}) },
		opPrepared:    u.prepared,
	})
}

func (u upperActions) books(ctx context.Context) db.Collection {
	return u.db.WithContext(ctx).Collection("books")
}

func (u upperActions) set(ctx context.Context, id int64, values db.Cond) (any, error) {
	return nil, u.books(ctx).Find(id).Update(values)
}

func (u upperActions) read(ctx context.Context) (any, error) {
	var all []upperBook
	err := u.books(ctx).Find(db.Cond{"price >": 10}).OrderBy("id").All(&all)
	return ormMap(all, upperBook.seen), err
}

// eager uses a join, because upper/db doesn't load associations.
func (u upperActions) eager(ctx context.Context) (any, error) {
	var all []struct {
		ID     int64  `db:"id"`
		Sequel string `db:"sequel"`
	}
	err := u.db.WithContext(ctx).SQL().Select("b.id", "s.isbn AS sequel").From("books AS b").
		Join("books AS s").On("s.prequel_id = b.id").All(&all)
	return fmt.Sprint(all), err
}

func (u upperActions) notFound(ctx context.Context) (any, error) {
	err := u.books(ctx).Find(99).One(new(upperBook))
	return errors.Is(err, db.ErrNoMoreRows), err
}

func (u upperActions) create(ctx context.Context) (any, error) {
	b := newUpperBook(ormNew[0])
	err := u.db.WithContext(ctx).Save(&b)
	return b.seen(), err
}

func (u upperActions) insert(ctx context.Context, all []ormBook, onConflict func(string) string) (any, error) {
	q := u.db.WithContext(ctx).SQL().InsertInto("books").Columns("isbn", "title", "price")
	for _, b := range all {
		q = q.Values(b.ISBN, b.Title, b.Price)
	}
	if onConflict != nil {
		q = q.Amend(onConflict)
	}
	return harness.Affected(q.Exec())
}

func (u upperActions) unique(ctx context.Context) (any, error) {
	b := newUpperBook(ormAgain)
	err := u.db.WithContext(ctx).Save(&b)
	return ormCode(err), err
}

func (u upperActions) returning(ctx context.Context) (any, error) {
	b := struct {
		ID    int64  `db:"id"`
		Price int64  `db:"price"`
		Title string `db:"title,omitempty"`
	}{ID: 2, Price: 21}
	err := u.books(ctx).UpdateReturning(&b)
	return fmt.Sprint(b), err
}

func (u upperActions) save(ctx context.Context) (any, error) {
	var b upperBook
	if err := u.db.WithContext(ctx).Get(&b, db.Cond{"id": 2}); err != nil {
		return nil, err
	}
	b.Price, b.Title = 21, "second"
	err := u.db.WithContext(ctx).Save(&b)
	return b.seen(), err
}

func (u upperActions) saveMark(ctx context.Context, mark int64) (any, error) {
	var b upperMarked
	if err := u.db.WithContext(ctx).Get(&b, db.Cond{"id": 2}); err != nil {
		return nil, err
	}
	b.Price, b.FenceToken = 21, mark
	return nil, u.db.WithContext(ctx).Save(&b)
}

func (u upperActions) saveNew(ctx context.Context) (any, error) {
	b := newUpperBook(ormNew[1])
	b.ID = 5
	err := u.db.WithContext(ctx).Save(&b)
	return b.seen(), err
}

func (u upperActions) bulk(ctx context.Context) (any, error) {
	return nil, u.books(ctx).Find(db.Cond{"price >=": 20}).Update(db.Cond{"price": db.Raw("price + 1")})
}

// prepared enables upper/db's statement cache, which keeps a prepared statement for each SQL string. The setting
// applies to all sessions.
func (u upperActions) prepared(ctx context.Context) (any, error) {
	session := u.db.WithContext(ctx)
	session.SetPreparedStatementCache(true)
	defer session.SetPreparedStatementCache(false)
	for price := range 3 {
		if err := session.Collection("books").Find(2).Update(db.Cond{"price": 21 + price}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
