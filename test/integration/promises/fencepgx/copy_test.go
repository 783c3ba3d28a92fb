package fencepgx_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

var (
	booksTable = pgx.Identifier{"books"}
	twoColumns = []string{"id", "price"}
)

// copyBooks copies the books 7 and 8.
func copyBooks(ctx context.Context, q querier) error {
	n, err := q.CopyFrom(ctx, booksTable, twoColumns, pgx.CopyFromRows([][]any{{7, 2}, {8, 3}}))
	if err == nil && n != 2 {
		return errors.New("not all were copied")
	}
	return err
}

// In each of pgx's modes a copied row stores the token, as an inserted row does.
func TestCopyIsMarked(t *testing.T) {
	for _, mode := range harness.PgxModes {
		var events seen
		s := newShopBy(t, sqlfence.RowFence("fence_token"), inMode(mode), events.observer())
		unchanged := s.Unchanged(t)
		harness.WantOnly(t, copyBooks(t.Context(), s.db), sqlfence.ErrNoFence)
		unchanged()
		events.want(t, "without a token", sqlfence.Refused)
		if err := copyBooks(harness.Holding(t, 12), s.db); err != nil {
			t.Error(err)
		}
		events.want(t, "a copy", sqlfence.Guarded)
		const copied = "1:10@9 2:10@9 3:10@9 7:2@12 8:3@12"
		if got := s.State(t, true); got != copied {
			t.Errorf("%v left %s", mode, got)
		}
		// The copied rows are fenced, and the application can't set the fence column.
		_, err := s.db.Exec(harness.Holding(t, 11), "UPDATE books SET price = 0 WHERE id = 7")
		harness.WantStale(t, err, 11, 12)
		_, err = s.db.CopyFrom(harness.Holding(t, 12), booksTable, []string{"id", "fence_token"}, pgx.CopyFromRows([][]any{{9, int64(0)}}))
		harness.WantError(t, err, sqlfence.ErrUnguardable)
		// If a row has another number of columns than named, or can't be encoded, no row is copied.
		for _, row := range [][]any{{9}, {9, 1, int64(4)}, {9, "no number"}} {
			if _, err := s.db.CopyFrom(harness.Holding(t, 12), booksTable, twoColumns, pgx.CopyFromRows([][]any{{10, 1}, row})); err == nil {
				t.Errorf("%v was copied", row)
			}
		}
		broken := errors.New("broken")
		_, err = s.db.CopyFrom(harness.Holding(t, 12), booksTable, twoColumns, pgx.CopyFromFunc(func() ([]any, error) { return nil, broken }))
		if err == nil {
			t.Error("a source that is broken was copied")
		}
		if got := s.State(t, true); got != copied {
			t.Errorf("%v left %s", mode, got)
		}
		s.givenBack(t)
	}
}

// In a transaction CopyFrom uses the transaction's tokens, and is rolled back with the transaction.
func TestCopyInTransaction(t *testing.T) {
	s := newShop(t, sqlfence.RowFence("fence_token"))
	undone := errors.New("undone")
	for _, end := range []error{undone, nil} {
		err := pgx.BeginFunc(harness.Holding(t, 12), s.db, func(tx pgx.Tx) error {
			if err := copyBooks(t.Context(), tx); err != nil {
				return err
			}
			return end
		})
		if !errors.Is(err, end) {
			t.Error(err)
		}
	}
	if got := s.State(t, true); got != "1:10@9 2:10@9 3:10@9 7:2@12 8:3@12" {
		t.Errorf("left %s", got)
	}
}

// COPY is refused if a guard is more than a column. The error names the statement to use instead, which is guarded.
func TestCopyRefused(t *testing.T) {
	s := newShop(t, sqlfence.RowFence("fence_token"))
	s.Exec(t, "ALTER TABLE books ADD COLUMN version bigint NOT NULL DEFAULT 0")
	ctx := sqlfence.WithFence(harness.HoldingKeys(t, 7, 12, 8, 12), sqlfence.Token{Name: "books", Value: 9})
	for name, rules := range map[string][]sqlfence.Rule{
		"ledger": {sqlfence.Ledger()},
		"both":   {sqlfence.RowFence("fence_token"), sqlfence.Ledger()},
		"key":    {sqlfence.RowFence("fence_token"), sqlfence.Key("id")},
		"serial": {sqlfence.RowFence("fence_token"), sqlfence.Serial("version")},
		"sealed": {sqlfence.RowFence("fence_token"), sqlfence.Sealed()},
		"claim":  {sqlfence.Key("id"), sqlfence.Claim("version")},
	} {
		db := s.open(t, func(*pgxpool.Config) {}, sqlfence.WithTable("books", rules...))
		unchanged := s.Unchanged(t)
		if err := copyBooks(ctx, db); !errors.Is(err, sqlfence.ErrUnguardable) {
			t.Errorf("%s: %v", name, err)
		}
		unchanged()
		if err := copyBooks(sqlfence.Bypass(t.Context(), "an import"), db); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s.Reset(t, 9)
		const insert = "INSERT INTO books (id, price) SELECT * FROM unnest($1::int[], $2::int[])"
		if name == "ledger" {
			if tag, err := db.Exec(harness.Holding(t, 9), insert, []int{7, 8}, []int{1, 2}); err != nil || tag.RowsAffected() != 2 {
				t.Errorf("%v, %v", tag, err)
			}
			s.Reset(t, 9)
		}
		db.Close()
	}
}

// COPY to an observed table stores the rows unchanged, and reports a refusal as an event.
func TestCopyObserved(t *testing.T) {
	for _, tt := range []struct {
		rule sqlfence.Rule
		ctx  context.Context
		want sqlfence.EventKind
	}{
		{sqlfence.RowFence("fence_token"), harness.Holding(t, 9), sqlfence.Guarded},
		{sqlfence.RowFence("no_such_column"), harness.Holding(t, 9), sqlfence.Guarded},
		{sqlfence.RowFence("fence_token"), t.Context(), sqlfence.WouldRefuse},
		{sqlfence.Ledger(), harness.Holding(t, 9), sqlfence.WouldRefuse},
	} {
		var events seen
		s := newShop(t, sqlfence.RowFence("fence_token"))
		db := s.open(t, func(*pgxpool.Config) {}, events.observer(), sqlfence.WithMode(sqlfence.Observe), sqlfence.WithTable("books", tt.rule))
		for _, q := range []querier{db} {
			if err := copyBooks(tt.ctx, q); err != nil {
				t.Error(err)
			}
			events.want(t, "observed", tt.want)
			if got := s.State(t, false); got != "1:10 2:10 3:10 7:2 8:3" {
				t.Errorf("left %s", got)
			}
		}
	}
}

// A COPY without a response has an unknown outcome, as any guarded write.
func TestCopyLosesItsReply(t *testing.T) {
	s := newShop(t, sqlfence.RowFence("fence_token"))
	s.Exec(t, `CREATE FUNCTION end_copy() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END'`)
	s.Exec(t, "CREATE CONSTRAINT TRIGGER end_copy AFTER INSERT ON books DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION end_copy()")
	err := copyBooks(harness.Holding(t, 9), s.db)
	harness.WantError(t, err, sqlfence.ErrUnknownOutcome)
	if pgconn.SafeToRetry(err) {
		t.Error("it isn't safe to send it again")
	}
}
