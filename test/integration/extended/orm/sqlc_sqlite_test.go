package orm_test

import (
	"context"

	sqlcpg "github.com/sqlfence/sqlfence/test/integration/extended/orm/sqlcstore/postgres"
	"github.com/sqlfence/sqlfence/test/integration/extended/orm/sqlcstore/sqlite"
)

// sqlcSQLite gives sqlc's SQLite package the types of its PostgreSQL package.
type sqlcSQLite struct{ *sqlite.Queries }

func fromSQLite(all []sqlite.Book, err error) ([]sqlcpg.Book, error) {
	var converted []sqlcpg.Book
	for _, b := range all {
		converted = append(converted, sqlcpg.Book(b))
	}
	return converted, err
}

func (q sqlcSQLite) BookWithSequels(ctx context.Context, id int64) ([]sqlcpg.BookWithSequelsRow, error) {
	all, err := q.Queries.BookWithSequels(ctx, id)
	var converted []sqlcpg.BookWithSequelsRow
	for _, r := range all {
		converted = append(converted, sqlcpg.BookWithSequelsRow{Book: sqlcpg.Book(r.Book), Sequel: r.Sequel})
	}
	return converted, err
}

func (q sqlcSQLite) CreateBook(ctx context.Context, p sqlcpg.CreateBookParams) (sqlcpg.Book, error) {
	b, err := q.Queries.CreateBook(ctx, sqlite.CreateBookParams(p))
	return sqlcpg.Book(b), err
}

func (q sqlcSQLite) CreateTwoBooks(ctx context.Context, p sqlcpg.CreateTwoBooksParams) ([]sqlcpg.Book, error) {
	return fromSQLite(q.Queries.CreateTwoBooks(ctx, sqlite.CreateTwoBooksParams(p)))
}

func (q sqlcSQLite) GetBook(ctx context.Context, id int64) (sqlcpg.Book, error) {
	b, err := q.Queries.GetBook(ctx, id)
	return sqlcpg.Book(b), err
}

func (q sqlcSQLite) ListBooks(ctx context.Context) ([]sqlcpg.Book, error) {
	return fromSQLite(q.Queries.ListBooks(ctx))
}

func (q sqlcSQLite) RaisePrices(ctx context.Context, p sqlcpg.RaisePricesParams) (int64, error) {
	return q.Queries.RaisePrices(ctx, sqlite.RaisePricesParams(p))
}

func (q sqlcSQLite) SaveBook(ctx context.Context, p sqlcpg.SaveBookParams) (sqlcpg.Book, error) {
	b, err := q.Queries.SaveBook(ctx, sqlite.SaveBookParams(p))
	return sqlcpg.Book(b), err
}

func (q sqlcSQLite) SetPrice(ctx context.Context, p sqlcpg.SetPriceParams) (int64, error) {
	return q.Queries.SetPrice(ctx, sqlite.SetPriceParams(p))
}

func (q sqlcSQLite) SoftDeleteBook(ctx context.Context, p sqlcpg.SoftDeleteBookParams) (int64, error) {
	return q.Queries.SoftDeleteBook(ctx, sqlite.SoftDeleteBookParams(p))
}

func (q sqlcSQLite) UpsertBooks(ctx context.Context, p sqlcpg.UpsertBooksParams) ([]sqlcpg.Book, error) {
	return fromSQLite(q.Queries.UpsertBooks(ctx, sqlite.UpsertBooksParams(p)))
}
