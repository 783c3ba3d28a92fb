package errors_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"
	"github.com/mattn/go-sqlite3"
	"modernc.org/sqlite"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// hasBaseError reports whether errors.As finds the base driver's own type in err.
func hasBaseError(b harness.Base, err error) bool {
	switch b.Name {
	case "pq":
		var e *pq.Error
		return errors.As(err, &e) && e.Code == "22P02"
	case "pgx", "fencepgx":
		var e *pgconn.PgError
		return errors.As(err, &e) && e.Code == "22P02"
	case "mattn":
		var e sqlite3.Error
		return errors.As(err, &e) && e.Code == sqlite3.ErrError
	case "mysql":
		var e *mysql.MySQLError
		return errors.As(err, &e)
	default:
		var e *sqlite.Error
		return errors.As(err, &e) && e.Code() == 1
	}
}

// However a statement is sent, the database's refusal has the same type, the same facts, and the base driver's error.
func TestErrorsByTheDatabase(t *testing.T) {
	rules := map[error][]sqlfence.Rule{
		sqlfence.ErrStale:       {sqlfence.RowFence("fence_token")},
		sqlfence.ErrOutOfScope:  {sqlfence.RowFence("fence_token"), sqlfence.Key("id")},
		sqlfence.ErrUnknownName: {sqlfence.Resource("unknown")},
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for target, rules := range rules {
			t.Run(target.Error(), func(t *testing.T) {
				s := harness.NewShop(t, b, rules...)
				s.Reset(t, 9)
				ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 8},
					sqlfence.Token{Name: "books/2", Value: 10}, sqlfence.Token{Name: "unknown", Value: 10})
				s.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
					for _, w := range harness.RowWrites[:2] {
						unchanged := s.Unchanged(t)
						_, err := send(ctx, w)
						harness.WantOnly(t, err, target)
						if !hasBaseError(b, err) {
							t.Errorf("%s: the base driver's error isn't found in %v (%T)", w.Name, err, err)
						}
						if errors.Is(target, sqlfence.ErrStale) {
							harness.WantStale(t, err, 8, 9)
						}
						unchanged()
					}
				})
			})
		}
	})
}

// The refusal of a query may come with the query, the first row, or a later one.
func TestErrorsOfRows(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Reset(t, 1)
		s.Exec(t, "UPDATE books SET fence_token = 9 WHERE id = 3")
		for name, query := range map[string]func(ctx context.Context, query string, args ...any) (*sql.Rows, error){
			"query": s.DB.QueryContext,
			"prepared": func(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
				stmt, err := s.DB.PrepareContext(ctx, query)
				if err != nil {
					return nil, err
				}
				t.Cleanup(func() { _ = stmt.Close() })
				return stmt.QueryContext(ctx, args...)
			},
		} {
			t.Run(name, func(t *testing.T) {
				defer s.Unchanged(t)()
				rows, err := query(harness.Holding(t, 8), "UPDATE books SET price = $1 RETURNING id, price", 30)
				if err == nil {
					for rows.Next() {
						var id, price int
						if err := rows.Scan(&id, &price); err != nil {
							t.Error(err)
						}
					}
					err = rows.Err()
					_ = rows.Close()
				}
				harness.WantStale(t, err, 8, 9)
				if !hasBaseError(b, err) {
					t.Errorf("the base driver's error isn't found in %v", err)
				}
			})
		}
		// The rows are closed before they were read. The write never succeeds, whether its refusal has arrived or not.
		t.Run("closed at once", func(t *testing.T) {
			defer s.Unchanged(t)()
			rows, err := s.DB.QueryContext(harness.Holding(t, 8), "UPDATE books SET price = 30 RETURNING id")
			if err == nil {
				_ = rows.Close()
			}
		})
	})
}

// If a statement is refused before it is sent, the error has the position of the cause, in bytes.
func TestErrorsUnguardable(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Reset(t, 9)
		for _, tt := range []struct {
			query  string
			offset int
		}{
			{"ALTER TABLE books ADD COLUMN x integer", 12},
			{"BEGIN; DELETE FROM books", 7},
			{"/* ü */ ALTER TABLE books ADD COLUMN x integer", 21},
			{"INSERT INTO books VALUES (1)", 18},
			{"UPDATE books SET price = 'open", 25},
		} {
			harness.EachWay(t, func(t *testing.T, run harness.RunFunc) {
				err := run(harness.Holding(t, 10), s.DB, tt.query)
				harness.WantOnly(t, err, sqlfence.ErrUnguardable)
				var unguardable *sqlfence.UnguardableError
				if !errors.As(err, &unguardable) || unguardable.Offset != tt.offset || unguardable.Reason == "" {
					t.Errorf("%s: %#v, want offset %d", tt.query, unguardable, tt.offset)
				}
			})
		}
	})
}

// Errors unrelated to sqlfence pass unchanged from the base driver: same type, same text, no sentinel.
func TestErrorsUnrelated(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	for _, tt := range []struct {
		name, query string
		args        []any
		ctx         context.Context
		is          error
	}{
		{"unique violation", "UPDATE books SET isbn = $1 WHERE id = $2", []any{"i2", 1}, t.Context(), nil},
		{"unique violation of an insert", "INSERT INTO books (id, isbn) VALUES ($1, $2)", []any{1, "i1"}, t.Context(), nil},
		{"not null", "UPDATE books SET price = $1 WHERE id = $2", []any{nil, 1}, t.Context(), nil},
		{"no such column", "UPDATE books SET nothing = $1 WHERE id = $2", []any{1, 1}, t.Context(), nil},
		{"no such table", "UPDATE nothing SET price = $1 WHERE id = $2", []any{1, 1}, t.Context(), nil},
		{"syntax", "UPDATE books SET price = = $1 WHERE id = $2", []any{1, 1}, t.Context(), nil},
		{"no rows", "UPDATE books SET price = $1 WHERE id = $2 RETURNING id", []any{1, 99}, t.Context(), sql.ErrNoRows},
		{"cancelled", harness.SetPrice, []any{1, 1}, cancelled, context.Canceled},
		{"deadline", harness.SetPrice, []any{1, 1}, late, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
				s.Reset(t, 5)
				ctx := sqlfence.WithFence(tt.ctx, sqlfence.Token{Name: "books", Value: 7})
				var id int
				for way, run := range map[string]func(db *sql.DB) error{
					"exec":  func(db *sql.DB) error { return harness.Ways["exec"](ctx, db, tt.query, tt.args...) },
					"query": func(db *sql.DB) error { return harness.Ways["query"](ctx, db, tt.query, tt.args...) },
					"row":   func(db *sql.DB) error { return db.QueryRowContext(ctx, tt.query, tt.args...).Scan(&id) },
					"tx": func(db *sql.DB) error {
						tx, err := db.BeginTx(t.Context(), nil)
						if err != nil {
							return err
						}
						defer tx.Rollback()
						return harness.Ways["prepared exec"](ctx, tx, tt.query, tt.args...)
					},
				} {
					if tt.name == "no rows" && way != "row" {
						continue // only Scan reports it
					}
					if tt.name == "no rows" && !b.Returns() {
						continue // it returns none in any case
					}
					unchanged := s.Unchanged(t)
					errRaw, errFenced := run(s.Plain), run(s.DB)
					if errRaw == nil || harness.ErrorText(errFenced) != harness.ErrorText(errRaw) {
						t.Errorf("%s fenced: %T %[2]v\n   raw: %T %[3]v", way, errFenced, errRaw)
					}
					if tt.is != nil && !errors.Is(errFenced, tt.is) {
						t.Errorf("%s: %v isn't %v", way, errFenced, tt.is)
					}
					if i := slices.IndexFunc(harness.Sentinels, func(s error) bool { return errors.Is(errFenced, s) }); i >= 0 {
						t.Errorf("%s: %v is %v", way, errFenced, harness.Sentinels[i])
					}
					unchanged()
				}
			})
		})
	}
}

// A statement that is cancelled while it waits for a row returns the base driver's error, and the connection stays
// usable. Only lib/pq learns the outcome from the server; with other drivers ErrUnknownOutcome wraps the driver's
// error.
func TestErrorsCancelledWhileWaiting(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.Networked() {
			t.Skip("SQLite waits for the whole file, and not by the context")
		}
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Reset(t, 5)
		var errs []error
		for i, db := range []*sql.DB{s.Plain, s.DB} {
			row := i + 1 // different rows, because a cancelled statement may still wait for its row
			holder, err := s.Plain.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := holder.Exec(harness.SetPrice, 20, row); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(harness.Holding(t, 7))
			done := make(chan error, 1)
			go func() { _, err := db.ExecContext(ctx, harness.SetPrice, 30, row); done <- err }()
			harness.Eventually(t, "the statement waits", func() bool { return b.Waiting(t, s.Plain) > 0 })
			cancel()
			err = <-done
			errs = append(errs, err)
			if err := holder.Rollback(); err != nil {
				t.Error(err)
			}
			harness.Eventually(t, "the server ends the statement", func() bool { return b.Waiting(t, s.Plain) == 0 })
		}
		raw, fenced := errs[0], errs[1]
		if b.Name == "pq" {
			if fmt.Sprintf("%T %[1]v", fenced) != fmt.Sprintf("%T %[1]v", raw) {
				t.Errorf("fenced: %v\n   raw: %v", fenced, raw)
			}
		} else if !errors.Is(fenced, sqlfence.ErrUnknownOutcome) || !errors.Is(raw, context.Canceled) || !errors.Is(fenced, context.Canceled) {
			t.Errorf("fenced: %v\n   raw: %v", fenced, raw)
		}
		if _, err := s.DB.ExecContext(harness.Holding(t, 7), harness.SetPrice, 30, 1); err != nil {
			t.Error(err)
		}
	})
}
