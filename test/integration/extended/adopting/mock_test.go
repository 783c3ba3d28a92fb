package adopting_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// setPrice is a function of the application that the application tests with sqlmock.
func setPrice(ctx context.Context, db *sql.DB, price int) (lost bool, err error) {
	_, err = db.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = 1", price)
	if errors.Is(err, sqlfence.ErrStale) {
		return true, nil
	}
	return false, err
}

// The application's SQL doesn't change under sqlfence, so a test may mock the base driver without sqlfence.
func TestMockWithoutSqlfence(t *testing.T) {
	ctx := t.Context()
	db, mock, err := sqlmock.New()
	harness.CloseAtEnd(t, db, err)

	mock.ExpectExec("UPDATE books SET price").WithArgs(30).WillReturnResult(sqlmock.NewResult(0, 1))
	if lost, err := setPrice(ctx, db, 30); lost || err != nil {
		t.Error(lost, err)
	}

	// A mock can return a StaleError, so that the application's handling of a stale write is tested.
	stale := &sqlfence.StaleError{Table: "books", Token: sqlfence.Token{Name: "books", Value: 7}, Current: 9}
	mock.ExpectExec("UPDATE books SET price").WithArgs(30).WillReturnError(stale)
	if lost, err := setPrice(ctx, db, 30); !lost || err != nil {
		t.Error(lost, err)
	}
	mock.ExpectClose()
}
