package fencepgx

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/basedriver"
)

// Tests with a server are in test/integration/promises/fencepgx.
var (
	_ pgx.BatchResults = (*results)(nil)
	_ pgx.Rows         = (*rows)(nil)
	_ pgx.Row          = row{}
)

// fencepgx finds the prepared statements of this version of pgx; New refuses versions with another field.
func TestPreparedAreFound(t *testing.T) {
	if _, ok := basedriver.PreparedOn(new(pgx.Conn)); !ok {
		t.Error("pgx keeps prepared statements elsewhere")
	}
	for _, other := range []any{nil, 1, new(int), pgx.Conn{}, new(struct{}), new(struct{ preparedStatements map[string]string }),
		new(struct {
			preparedStatements map[string]*struct{ SQL []byte }
		})} {
		if _, ok := basedriver.PreparedOn(other); ok {
			t.Errorf("they are found in %T", other)
		}
	}
}

// A database of another dialect, or without a pool, is refused before anything is sent.
func TestNewRefuses(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), "postgres://127.0.0.1:1/nowhere")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, opt := range []sqlfence.Option{nil, sqlfence.WithDialect(sqlfence.MySQL), sqlfence.WithTable("")} {
		if _, err := New(pool, opt); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Error(err)
		}
	}
	if _, err := New(nil); !errors.Is(err, sqlfence.ErrInvalid) {
		t.Error(err)
	}
	if _, err := New(pool, sqlfence.WithTable("books")); err != nil {
		t.Error(err)
	}
}
