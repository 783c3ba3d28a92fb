package core_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

const twoWrites = "WITH b AS (UPDATE books SET price = $1 RETURNING id), p AS (DELETE FROM pens WHERE id = $2) SELECT id FROM b"

// If a statement writes to several tables, each table is guarded by its own token. A refusal names the table of the
// refused token.
func TestTokensOfSeveralTables(t *testing.T) {
	base := new(fakedb.Recorder)
	db := openPostgres(t, base, sqlfence.WithTable("books", fenced), sqlfence.WithTable("pens", fenced, sqlfence.Optional()))
	both := sqlfence.WithFence(t.Context(), token("pens", 9), token("books", 7))
	ask := func(ctx context.Context) error { return db.QueryRowContext(ctx, twoWrites, 30, 1).Scan(new(int)) }
	for _, tt := range []struct {
		name string
		ctx  context.Context
		want []driver.Value
	}{
		{"both", both, []driver.Value{int64(30), int64(1), int64(7), int64(9)}},
		{"the other is optional", sqlfence.WithFence(t.Context(), token("books", 7)), []driver.Value{int64(30), int64(1), int64(7)}},
	} {
		if err := ask(tt.ctx); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := base.Values(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: sent %v, want %v", tt.name, got, tt.want)
		}
	}
	if err := ask(sqlfence.WithFence(t.Context(), token("pens", 9))); !errors.Is(err, sqlfence.ErrNoFence) {
		t.Errorf("without the token of books: %v", err)
	}
	for i, want := range []sqlfence.StaleError{
		{Table: "books", Token: token("books", 7), Current: 12},
		{Table: "pens", Token: token("pens", 9), Current: 12},
	} {
		marker := []string{"sqlfence:nonce:stale:0:12", "sqlfence:nonce:stale:1:12"}[i]
		base.Fails = func(string) error { return errors.New(`invalid input syntax for type bigint: "` + marker + `"`) }
		var stale *sqlfence.StaleError
		if err := ask(both); !errors.As(err, &stale) || stale.Table != want.Table || stale.Token != want.Token || stale.Current != want.Current {
			t.Errorf("%s: %v, want %+v", marker, err, want)
		}
	}
}

// In Observe mode a token that was never issued isn't stored, because it would be higher than every issued token.
func TestObserveStoresNoTokenThatWasNotIssued(t *testing.T) {
	base := &fakedb.Recorder{Fails: func(query string) error {
		if strings.Contains(query, "sqlfence:nonce:ledger") {
			return pgError{"22P02", `invalid input syntax for type bigint: "sqlfence:nonce:ledger:0:5"`}
		}
		return nil
	}}
	var told []error
	db := openPostgres(t, base, sqlfence.WithTable("books", fenced, sqlfence.Ledger()), sqlfence.WithMode(sqlfence.Observe),
		sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { told = append(told, e.Err) }))
	if _, err := db.ExecContext(with(t.Context(), 7), "UPDATE books SET price = $1", 30); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || !errors.Is(told[0], sqlfence.ErrNotIssued) {
		t.Errorf("observed %v, want ErrNotIssued", told)
	}
	if len(base.Sent) != 2 || !slices.Equal(base.Values(), []driver.Value{int64(30)}) {
		t.Errorf("sent %q with %v, want the second without a token", base.Sent, base.Values())
	}
}

// A pgError is a PostgreSQL error.
type pgError struct{ code, text string }

func (e pgError) Error() string    { return e.text }
func (e pgError) SQLState() string { return e.code }
