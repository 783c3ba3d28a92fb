package orm_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/extended/orm/sqlcstore/mysql"
	sqlcpg "github.com/sqlfence/sqlfence/test/integration/extended/orm/sqlcstore/postgres"
	"github.com/sqlfence/sqlfence/test/integration/extended/orm/sqlcstore/sqlite"
)

// sqlc generates a package for each dialect. The tests use PostgreSQL's package; adapters in sqlc_sqlite_test.go and
// sqlc_mysql_test.go give the other packages the same methods.
var sqlcORM = orm{
	name:     "sqlc",
	modules:  []string{"github.com/sqlc-dev/sqlc"},
	versions: sqlcVersion,
	bases:    ormBases,
	open: func(_ testing.TB, db *ormDB) ormActions {
		all := openSQLC(db).all()
		if db.mysql() { // no UPDATE … RETURNING
			delete(all, opReturning)
		}
		return all
	},
}

func openSQLC(db *ormDB) sqlcActions {
	switch {
	case db.postgres():
		return sqlcActions{db.DB, func(db sqlcDBTX) sqlcpg.Querier { return sqlcpg.New(db) },
			func(ctx context.Context, db sqlcDBTX) (sqlcPrepared, error) { return sqlcpg.Prepare(ctx, db) }}
	case db.mysql():
		return sqlcActions{db.DB, func(db sqlcDBTX) sqlcpg.Querier { return sqlcMySQL{mysql.New(db)} },
			func(ctx context.Context, db sqlcDBTX) (sqlcPrepared, error) {
				q, err := mysql.Prepare(ctx, db)
				return sqlcMySQL{q}, err
			}}
	default:
		return sqlcActions{db.DB, func(db sqlcDBTX) sqlcpg.Querier { return sqlcSQLite{sqlite.New(db)} },
			func(ctx context.Context, db sqlcDBTX) (sqlcPrepared, error) {
				q, err := sqlite.Prepare(ctx, db)
				return sqlcSQLite{q}, err
			}}
	}
}

// sqlcVersion returns the version that sqlc has written into its generated code, because sqlc isn't in go.mod.
func sqlcVersion(t *testing.T, _ string) string {
	t.Helper()
	text, err := os.ReadFile("sqlcstore/postgres/db.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "//   sqlc ")
	v, _, found := strings.Cut(rest, "\n")
	if !found {
		t.Fatal("the generated code doesn't tell the version of sqlc")
	}
	return v
}

type (
	sqlcDBTX     = sqlcpg.DBTX
	sqlcPrepared interface {
		sqlcpg.Querier
		Close() error
	}
	sqlcActions struct {
		db      *sql.DB
		queries func(sqlcDBTX) sqlcpg.Querier
		prepare func(context.Context, sqlcDBTX) (sqlcPrepared, error)
	}
)

// all has no query that writes the fence column, because Prepare would refuse such a query.
func (c sqlcActions) all() ormActions {
	return ormActions{
		opRead:        c.read,
		opEager:       c.eager,
		opNotFound:    c.notFound,
		opCreate:      c.create,
		opCreateBatch: c.createBatch,
		opUnique:      c.unique,
		opUpdate:      func(ctx context.Context) (any, error) { return c.setPrice(ctx, c.db, 2) },
		opMissing:     func(ctx context.Context) (any, error) { return c.setPrice(ctx, c.db, 99) },
		opSaveMarked:  c.save,
		opText:        c.save,
		opReturning:   c.save,
		opBulk:        c.bulk,
		opUpsert:      c.upsert,
		opDelete:      c.delete,
		opSoftDelete:  c.softDelete,
		opCommit:      func(ctx context.Context) (any, error) { return nil, c.transaction(ctx, nil) },
		opRollback:    func(ctx context.Context) (any, error) { return nil, c.transaction(ctx, errORMRollback) },
		opPrepared:    c.prepared,
	}
}

func sqlcSeen(all ...sqlcpg.Book) []ormBook {
	var seen []ormBook
	for _, b := range all {
		seen = append(seen, ormBook{ID: b.ID, ISBN: b.Isbn, Title: b.Title, Price: b.Price, Deleted: b.DeletedAt.Valid})
	}
	return seen
}

func (c sqlcActions) read(ctx context.Context) (any, error) {
	all, err := c.queries(c.db).ListBooks(ctx)
	return sqlcSeen(all...), err
}

func (c sqlcActions) eager(ctx context.Context) (any, error) {
	all, err := c.queries(c.db).BookWithSequels(ctx, 1)
	var seen []ormBook
	for _, row := range all {
		book := sqlcSeen(row.Book)[0]
		book.Sequels = row.Sequel
		seen = append(seen, book)
	}
	return seen, err
}

func (c sqlcActions) notFound(ctx context.Context) (any, error) {
	_, err := c.queries(c.db).GetBook(ctx, 99)
	return errors.Is(err, sql.ErrNoRows), err
}

func (c sqlcActions) create(ctx context.Context) (any, error) {
	b, err := c.queries(c.db).CreateBook(ctx, sqlcpg.CreateBookParams{Isbn: "i4", Title: "four", Price: 40})
	return sqlcSeen(b), err
}

func (c sqlcActions) createBatch(ctx context.Context) (any, error) {
	all, err := c.queries(c.db).CreateTwoBooks(ctx, sqlcpg.CreateTwoBooksParams{
		Isbn1: "i4", Title1: "four", Price1: 40, Isbn2: "i5", Title2: "five", Price2: 50})
	return sqlcSeen(all...), err
}

func (c sqlcActions) unique(ctx context.Context) (any, error) {
	_, err := c.queries(c.db).CreateBook(ctx, sqlcpg.CreateBookParams{Isbn: "i1", Title: "again", Price: 1})
	return ormCode(err), err
}

func (c sqlcActions) setPrice(ctx context.Context, db sqlcDBTX, id int64) (any, error) {
	return c.queries(db).SetPrice(ctx, sqlcpg.SetPriceParams{Price: 21, ID: id})
}

// save writes the record's fields. sqlc has read the fence column into the record and doesn't write it.
func (c sqlcActions) save(ctx context.Context) (any, error) {
	b, err := c.queries(c.db).GetBook(ctx, 2)
	if err != nil {
		return nil, err
	}
	saved, err := c.queries(c.db).SaveBook(ctx, sqlcpg.SaveBookParams{
		ID: b.ID, Title: ormText, Price: 21, PrequelID: b.PrequelID, DeletedAt: b.DeletedAt})
	return fmt.Sprint(b.FenceToken, sqlcSeen(saved)), err
}

func (c sqlcActions) bulk(ctx context.Context) (any, error) {
	return c.queries(c.db).RaisePrices(ctx, sqlcpg.RaisePricesParams{Amount: 1, Least: 20})
}

func (c sqlcActions) upsert(ctx context.Context) (any, error) {
	all, err := c.queries(c.db).UpsertBooks(ctx, sqlcpg.UpsertBooksParams{
		Isbn1: "i1", Title1: "uno", Price1: 11, Isbn2: "i4", Title2: "four", Price2: 40})
	return sqlcSeen(all...), err
}

func (c sqlcActions) delete(ctx context.Context) (any, error) {
	return c.queries(c.db).DeleteBook(ctx, 3)
}

func (c sqlcActions) softDelete(ctx context.Context) (any, error) {
	return c.queries(c.db).SoftDeleteBook(ctx, sqlcpg.SoftDeleteBookParams{
		ID: 3, DeletedAt: sql.NullTime{Time: ormDeletedAt, Valid: true}})
}

// transaction writes and then returns end; it commits if end is nil.
func (c sqlcActions) transaction(ctx context.Context, end error) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if _, err := c.setPrice(ctx, tx, 2); err != nil {
		return err
	}
	if _, err := c.queries(tx).DeleteBook(ctx, 3); err != nil {
		return err
	}
	if end != nil {
		return end
	}
	return tx.Commit()
}

// prepared uses sqlc's emit_prepared_queries: all queries are prepared under a context without a token.
func (c sqlcActions) prepared(ctx context.Context) (any, error) {
	q, err := c.prepare(context.Background(), c.db)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	for price := range int64(3) {
		if _, err := q.SetPrice(ctx, sqlcpg.SetPriceParams{Price: 21 + price, ID: 2}); err != nil {
			return nil, err
		}
	}
	b, err := q.GetBook(ctx, 2)
	return sqlcSeen(b), err
}
