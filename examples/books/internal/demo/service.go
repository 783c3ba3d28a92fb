package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/mysql"
	"github.com/sqlfence/sqlfence/tokens"
	"github.com/sqlfence/sqlfence/verify"
)

// opener opens a database: fenced or bare. Everything after opening is equal for both.
type opener func(*source) (*sql.DB, error)

func fenced(s *source) (*sql.DB, error) {
	opts := []sqlfence.Option{sqlfence.WithTable("books", sqlfence.RowFence("fence_token"))}
	if !s.unverified {
		opts = append(opts, verify.OnConnect())
	}
	return sqlfence.Open(s.driver, s.dsn, opts...)
}

func bare(s *source) (*sql.DB, error) { return sql.Open(s.driver, s.dsn) }

// service is the book service: it changes the price of the one book.
type service struct {
	db     *sql.DB
	tokens *tokens.Store
	mysql  bool
}

// withService runs f on the service of a fresh database and removes the database afterwards.
func withService(ctx context.Context, fresh func(context.Context) (*source, error), open opener, f func(*service) error) (err error) {
	src, err := fresh(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.drop()) }()
	if err := src.create(ctx); err != nil {
		return err
	}
	db, err := open(src)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(8) // enough to race, few enough for any server
	db.SetMaxIdleConns(8)
	store, err := tokens.New(db)
	if err != nil {
		return err
	}
	if err := store.Setup(ctx); err != nil {
		return fmt.Errorf("set up tokens: %w", err)
	}
	return f(&service{db, store, src.driver == mysql.Driver})
}

func (s *service) takeToken(ctx context.Context) (sqlfence.Token, error) {
	return s.tokens.Issue(ctx, "books")
}

// A write is a price that the database took.
type write struct {
	token int64
	price int64
	order int64 // among the row's writes; the first is 1
}

// setPrice is all that an application has to do: the token goes into the context, and the statement stays unchanged.
func (s *service) setPrice(ctx context.Context, t sqlfence.Token, price int64) (write, error) {
	ctx = sqlfence.WithFence(ctx, t)
	w := write{token: t.Value, price: price}
	if s.mysql {
		return s.setPriceMySQL(ctx, w)
	}
	err := s.db.QueryRowContext(ctx,
		`UPDATE books SET price = $1, writes = writes + 1 WHERE id = 1 RETURNING writes`, price).Scan(&w.order)
	return w, err
}

// setPriceMySQL has LAST_INSERT_ID bring the number of writes, as MySQL has no RETURNING.
func (s *service) setPriceMySQL(ctx context.Context, w write) (write, error) {
	res, err := s.db.ExecContext(ctx, `UPDATE books SET price = ?, writes = LAST_INSERT_ID(writes + 1) WHERE id = 1`, w.price)
	if err != nil {
		return w, err
	}
	w.order, err = res.LastInsertId()
	return w, err
}

// A book is the row as it stands.
type book struct{ price, writes, fence int64 }

func (s *service) book(ctx context.Context) (b book, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT price, writes, fence_token FROM books WHERE id = 1`).Scan(&b.price, &b.writes, &b.fence)
	return b, err
}
