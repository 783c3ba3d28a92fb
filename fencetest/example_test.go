package fencetest_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencetest"
)

// raisePrice is the program under test: it reads the price, and writes a new price.
func raisePrice(ctx context.Context, db *sql.DB, book int) error {
	var price int
	if err := db.QueryRowContext(ctx, "SELECT price FROM books WHERE id = ?", book).Scan(&price); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, "UPDATE books SET price = ? WHERE id = ?", price+1, book)
	return err
}

const books = "CREATE TABLE books (id integer PRIMARY KEY, price integer); INSERT INTO books VALUES (1, 10)"

// The program has read the price, and another process takes over before it writes.
func Example() {
	_ = func(t *testing.T) { // func TestRaisePriceTooLate(t *testing.T)
		db := fencetest.Open(t, books, sqlfence.WithTable("books"))
		ctx := db.Hold(t.Context(), "books")
		db.Before("UPDATE books", func() { db.Hold(t.Context(), "books") })
		if err := raisePrice(ctx, db.DB, 1); !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("raisePrice returns %v, want ErrStale", err)
		}
	}
}
