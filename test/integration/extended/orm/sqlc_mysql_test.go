package orm_test

import (
	"context"

	"github.com/sqlfence/sqlfence/test/integration/extended/orm/sqlcstore/mysql"
	sqlcpg "github.com/sqlfence/sqlfence/test/integration/extended/orm/sqlcstore/postgres"
)

// sqlcMySQL gives sqlc's MySQL package the methods of its PostgreSQL package. MySQL has no RETURNING, so these methods
// read the row after the write.
type sqlcMySQL struct{ *mysql.Queries }

func fromMySQL(all []mysql.Book, err error) ([]sqlcpg.Book, error) {
	return ormMap(all, func(b mysql.Book) sqlcpg.Book { return sqlcpg.Book(b) }), err
}

func (q sqlcMySQL) BookWithSequels(ctx context.Context, id int64) ([]sqlcpg.BookWithSequelsRow, error) {
	all, err := q.Queries.BookWithSequels(ctx, id)
	return ormMap(all, func(r mysql.BookWithSequelsRow) sqlcpg.BookWithSequelsRow {
		return sqlcpg.BookWithSequelsRow{Book: sqlcpg.Book(r.Book), Sequel: r.Sequel}
	}), err
}

func (q sqlcMySQL) CreateBook(ctx context.Context, p sqlcpg.CreateBookParams) (sqlcpg.Book, error) {
	id, err := q.Queries.CreateBook(ctx, mysql.CreateBookParams(p))
	if err != nil {
		return sqlcpg.Book{}, err
	}
	return q.GetBook(ctx, id)
}

func (q sqlcMySQL) CreateTwoBooks(ctx context.Context, p sqlcpg.CreateTwoBooksParams) ([]sqlcpg.Book, error) {
	if _, err := q.Queries.CreateTwoBooks(ctx, mysql.CreateTwoBooksParams(p)); err != nil {
		return nil, err
	}
	return q.ListBooks(ctx)
}

func (q sqlcMySQL) GetBook(ctx context.Context, id int64) (sqlcpg.Book, error) {
	b, err := q.Queries.GetBook(ctx, id)
	return sqlcpg.Book(b), err
}

func (q sqlcMySQL) ListBooks(ctx context.Context) ([]sqlcpg.Book, error) {
	return fromMySQL(q.Queries.ListBooks(ctx))
}

func (q sqlcMySQL) RaisePrices(ctx context.Context, p sqlcpg.RaisePricesParams) (int64, error) {
	return q.Queries.RaisePrices(ctx, mysql.RaisePricesParams(p))
}

func (q sqlcMySQL) SaveBook(ctx context.Context, p sqlcpg.SaveBookParams) (sqlcpg.Book, error) {
	if _, err := q.Queries.SaveBook(ctx, mysql.SaveBookParams(p)); err != nil {
		return sqlcpg.Book{}, err
	}
	return q.GetBook(ctx, p.ID)
}

func (q sqlcMySQL) SetPrice(ctx context.Context, p sqlcpg.SetPriceParams) (int64, error) {
	return q.Queries.SetPrice(ctx, mysql.SetPriceParams(p))
}

func (q sqlcMySQL) SoftDeleteBook(ctx context.Context, p sqlcpg.SoftDeleteBookParams) (int64, error) {
	return q.Queries.SoftDeleteBook(ctx, mysql.SoftDeleteBookParams(p))
}

func (q sqlcMySQL) UpsertBooks(ctx context.Context, p sqlcpg.UpsertBooksParams) ([]sqlcpg.Book, error) {
	if _, err := q.Queries.UpsertBooks(ctx, mysql.UpsertBooksParams(p)); err != nil {
		return nil, err
	}
	return q.ListBooks(ctx)
}
