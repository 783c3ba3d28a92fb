package orm_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jet/jet/v2/qrm"
	"github.com/go-jet/jet/v2/stmtcache"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

var jetORM = orm{
	name:    "jet",
	modules: []string{"github.com/go-jet/jet/v2"},
	bases:   ormBases,
	open: func(_ testing.TB, db *ormDB) ormActions {
		switch {
		case db.postgres():
			return jetActions{db.DB, newJetPostgres("")}.all()
		case db.mysql():
			return jetActions{db.DB, newJetMySQL("")}.withoutReturning()
		}
		return jetActions{db.DB, newJetSQLite("")}.all()
	},
}

// A jetBook may have the fence column, because each statement of jet lists the columns to write.
type jetBook struct {
	ID         int64 `sql:"primary_key"`
	Isbn       string
	Title      string
	Price      int64
	DeletedAt  *time.Time
	FenceToken *int64
}

func newJetBook(b ormBook) jetBook { return jetBook{Isbn: b.ISBN, Title: b.Title, Price: b.Price} }

func (b jetBook) seen() ormBook {
	return ormBook{ID: b.ID, ISBN: b.Isbn, Title: b.Title, Price: b.Price, Deleted: b.DeletedAt != nil}
}

// jetBooks receives the records that a statement returns.
type jetBooks []struct {
	Book jetBook `alias:"books"`
}

func (all jetBooks) seen() []ormBook {
	var seen []ormBook
	for _, b := range all {
		seen = append(seen, b.Book.seen())
	}
	return seen
}

type jetStatement interface {
	ExecContext(context.Context, qrm.Executable) (sql.Result, error)
	QueryContext(ctx context.Context, by qrm.Queryable, to any) error
}

// jetStatements is implemented by jetPostgres, jetSQLite and jetMySQL.
type jetStatements interface {
	dearer(price int64) jetStatement
	get(id int64) jetStatement
	withSequels() jetStatement
	insert([]jetBook) jetStatement
	ignore([]jetBook) jetStatement
	upsert([]jetBook) jetStatement
	setPrice(id, price int64) jetStatement
	setPriceReturning(id, price int64) jetStatement
	setTitle(id int64, title string) jetStatement
	setPrices(id, price, otherID, otherPrice int64) jetStatement
	save(jetBook) jetStatement
	saveMarked(jetBook) jetStatement
	saveMarking(jetBook) jetStatement
	raise(least, by int64) jetStatement
	remove(id int64) jetStatement
	softDelete(id int64, at time.Time) jetStatement
}

type jetActions struct {
	db  *sql.DB
	sql jetStatements
}

func (j jetActions) all() ormActions {
	return ormWrites[ormRunner]{
		database: func(context.Context) ormRunner { return j.db },
		setPrice: func(ctx context.Context, by ormRunner, id, price int64) (any, error) {
			return harness.Affected(j.sql.setPrice(id, price).ExecContext(ctx, by))
		},
		remove: func(ctx context.Context, by ormRunner, id int64) (any, error) {
			return harness.Affected(j.sql.remove(id).ExecContext(ctx, by))
		},
		transaction: ormTransaction(j.db),
		exec:        ormExec,
	}.actions(ormActions{
		opRead:        j.query(j.sql.dearer(10)),
		opEager:       j.eager,
		opNotFound:    j.notFound,
		opCreate:      j.query(j.sql.insert(ormMap(ormNew[:1], newJetBook))),
		opCreateBatch: j.query(j.sql.insert(ormMap(ormNew, newJetBook))),
		opUnique:      j.unique,
		opText:        j.exec(j.sql.setTitle(2, ormText)),
		opReturning:   j.query(j.sql.setPriceReturning(2, 21)),
		opSave:        j.edit(j.sql.save),
		opSaveMarked:  j.edit(j.sql.saveMarked),
		opSaveMark:    j.edit(j.sql.saveMarking),
		opBulk:        j.exec(j.sql.raise(20, 1)),
		opBulkRecords: j.exec(j.sql.setPrices(1, 11, 3, 31)),
		opIgnore:      j.exec(j.sql.ignore(ormMap(ormConflicting, newJetBook))),
		opUpsert:      j.exec(j.sql.upsert(ormMap(ormConflicting, newJetBook))),
		opSoftDelete:  j.exec(j.sql.softDelete(3, ormDeletedAt)),
		opPrepared:    j.prepared,
	})
}

// withoutReturning returns the operations for MySQL, where jet supports neither RETURNING nor an INSERT that ignores a
// conflict.
func (j jetActions) withoutReturning() ormActions {
	all := j.all()
	all[opCreate] = j.exec(j.sql.insert(ormMap(ormNew[:1], newJetBook)))
	all[opCreateBatch] = j.exec(j.sql.insert(ormMap(ormNew, newJetBook)))
	delete(all, opReturning)
	delete(all, opIgnore)
	return all
}

func (j jetActions) query(s jetStatement) ormAction {
	return func(ctx context.Context) (any, error) {
		var all jetBooks
		err := s.QueryContext(ctx, j.db, &all)
		return all.seen(), err
	}
}

func (j jetActions) exec(s jetStatement) ormAction {
	return func(ctx context.Context) (any, error) { return harness.Affected(s.ExecContext(ctx, j.db)) }
}

// edit reads a record with its fence column, changes the record and saves it.
func (j jetActions) edit(save func(jetBook) jetStatement) ormAction {
	return func(ctx context.Context) (any, error) {
		var all jetBooks
		if err := j.sql.get(2).QueryContext(ctx, j.db, &all); err != nil {
			return nil, err
		}
		b := all[0].Book
		b.Title, b.Price = "second", 21
		return harness.Affected(save(b).ExecContext(ctx, j.db))
	}
}

func (j jetActions) eager(ctx context.Context) (any, error) {
	var all []struct {
		Book    jetBook `alias:"books"`
		Sequels []struct {
			ID   int64 `sql:"primary_key"`
			Isbn string
		} `alias:"sequels"`
	}
	err := j.sql.withSequels().QueryContext(ctx, j.db, &all)
	var seen []ormBook
	for _, b := range all {
		book := b.Book.seen()
		for _, s := range b.Sequels {
			book.Sequels += s.Isbn
		}
		seen = append(seen, book)
	}
	return seen, err
}

func (j jetActions) notFound(ctx context.Context) (any, error) {
	var b struct {
		Book jetBook `alias:"books"`
	}
	err := j.sql.get(99).QueryContext(ctx, j.db, &b)
	return errors.Is(err, qrm.ErrNoRows), err
}

func (j jetActions) unique(ctx context.Context) (any, error) {
	err := j.sql.insert([]jetBook{newJetBook(ormAgain)}).QueryContext(ctx, j.db, new(jetBooks))
	return ormCode(err), err
}

// prepared uses jet's statement cache, which keeps a prepared statement for each SQL string.
func (j jetActions) prepared(ctx context.Context) (any, error) {
	cache := stmtcache.New(j.db)
	defer func() { _ = cache.ClearCache() }()
	for price := range int64(3) {
		if _, err := j.sql.setPrice(2, 21+price).ExecContext(ctx, cache); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func TestJetStatementsAreGenerated(t *testing.T) {
	_, want, _ := strings.Cut(readText(t, "jet_postgres_test.go"), "\n// jetPostgres builds")
	_, got, _ := strings.Cut(readText(t, "jet_sqlite_test.go"), "\n// jetSQLite builds")
	if want = strings.NewReplacer("postgres", "sqlite", "etPostgres", "etSQLite").Replace(want); got == "" || got != want {
		t.Error("jet_sqlite_test.go differs from jet_postgres_test.go: run go generate")
	}
}
