package drivers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"
	"github.com/mattn/go-sqlite3"
	"modernc.org/sqlite"

	"github.com/sqlfence/sqlfence"
)

// hasBaseError reports whether errors.As finds the base driver's own type in err.
func hasBaseError(b base, err error) bool {
	switch b.name {
	case "pq":
		var e *pq.Error
		return errors.As(err, &e) && e.Code == "22P02"
	case "pgx":
		var e *pgconn.PgError
		return errors.As(err, &e) && e.Code == "22P02"
	case "mattn":
		var e sqlite3.Error
		return errors.As(err, &e) && e.Code == sqlite3.ErrError
	default:
		var e *sqlite.Error
		return errors.As(err, &e) && e.Code() == 1
	}
}

// sentinels that a statement can be refused with.
var sentinels = []error{sqlfence.ErrStale, sqlfence.ErrNoFence, sqlfence.ErrOutOfScope, sqlfence.ErrUnguardable,
	sqlfence.ErrUnknownName, sqlfence.ErrTokenLimit, sqlfence.ErrConflict, sqlfence.ErrGone, sqlfence.ErrLocked}

// wantOnly fails the test unless err is target and no other sentinel.
func wantOnly(t *testing.T, err, target error) {
	t.Helper()
	wantError(t, err, target)
	for _, s := range sentinels {
		if s != target && errors.Is(err, s) { // which of them?
			t.Errorf("%v is also %v", err, s)
		}
	}
}

// Whichever way a statement is sent, its refusal by the database has the type,
// the facts, and the base driver's error.
func TestErrorsByTheDatabase(t *testing.T) {
	rules := map[error][]sqlfence.Rule{
		sqlfence.ErrStale:       {sqlfence.RowFence("fence_token")},
		sqlfence.ErrOutOfScope:  {sqlfence.RowFence("fence_token"), sqlfence.Key("id")},
		sqlfence.ErrUnknownName: {sqlfence.Resource("unknown")},
	}
	eachBase(t, func(t *testing.T, b base) {
		for target, rules := range rules {
			t.Run(target.Error(), func(t *testing.T) {
				s := newShop(t, b, rules...)
				s.reset(t, 9)
				ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 8},
					sqlfence.Token{Name: "books/2", Value: 10}, sqlfence.Token{Name: "unknown", Value: 10})
				s.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
					for _, w := range rowWrites[:2] {
						unchanged := s.unchanged(t)
						_, err := send(ctx, w)
						wantOnly(t, err, target)
						if !hasBaseError(b, err) {
							t.Errorf("%s: the base driver's error isn't found in %v (%T)", w.name, err, err)
						}
						if errors.Is(target, sqlfence.ErrStale) {
							wantStale(t, err, 8, 9)
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
	eachBase(t, func(t *testing.T, b base) {
		s := newShop(t, b, sqlfence.RowFence("fence_token"))
		s.reset(t, 1)
		s.exec(t, "UPDATE books SET fence_token = 9 WHERE id = 3")
		for name, query := range map[string]func(ctx context.Context, query string, args ...any) (*sql.Rows, error){
			"query": s.db.QueryContext,
			"prepared": func(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
				stmt, err := s.db.PrepareContext(ctx, query)
				if err != nil {
					return nil, err
				}
				t.Cleanup(func() { _ = stmt.Close() })
				return stmt.QueryContext(ctx, args...)
			},
		} {
			t.Run(name, func(t *testing.T) {
				defer s.unchanged(t)()
				rows, err := query(holding(t, 8), "UPDATE books SET price = $1 RETURNING id, price", 30)
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
				wantStale(t, err, 8, 9)
				if !hasBaseError(b, err) {
					t.Errorf("the base driver's error isn't found in %v", err)
				}
			})
		}
		// Closed before the rows were read: the write either was refused or waits
		// for nothing; it never lands.
		t.Run("closed at once", func(t *testing.T) {
			defer s.unchanged(t)()
			rows, err := s.db.QueryContext(holding(t, 8), "UPDATE books SET price = 30 RETURNING id")
			if err == nil {
				_ = rows.Close()
			}
		})
	})
}

// What is refused before it is sent says where, in bytes.
func TestErrorsUnguardable(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		s := newShop(t, b, sqlfence.RowFence("fence_token"))
		s.reset(t, 9)
		for _, tt := range []struct {
			query  string
			offset int
		}{
			{"ALTER TABLE books ADD COLUMN x integer", 12},
			{"DELETE FROM pens; DELETE FROM books", 18},
			{"/* ü */ ALTER TABLE books ADD COLUMN x integer", 21},
			{"INSERT INTO books VALUES (1)", 18},
			{"UPDATE books SET price = 'open", 25},
		} {
			eachWay(t, func(t *testing.T, run runFunc) {
				err := run(holding(t, 10), s.db, tt.query)
				wantOnly(t, err, sqlfence.ErrUnguardable)
				var unguardable *sqlfence.UnguardableError
				if !errors.As(err, &unguardable) || unguardable.Offset != tt.offset || unguardable.Reason == "" {
					t.Errorf("%s: %#v, want offset %d", tt.query, unguardable, tt.offset)
				}
			})
		}
	})
}

// Errors that are none of ours come through as the base driver's own: same type,
// same text, no sentinel.
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
		{"cancelled", setPrice, []any{1, 1}, cancelled, context.Canceled},
		{"deadline", setPrice, []any{1, 1}, late, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachBase(t, func(t *testing.T, b base) {
				s := newShop(t, b, sqlfence.RowFence("fence_token"))
				s.reset(t, 5)
				ctx := sqlfence.WithFence(tt.ctx, sqlfence.Token{Name: "books", Value: 7})
				var id int
				for way, run := range map[string]func(db *sql.DB) error{
					"exec":  func(db *sql.DB) error { return ways["exec"](ctx, db, tt.query, tt.args...) },
					"query": func(db *sql.DB) error { return ways["query"](ctx, db, tt.query, tt.args...) },
					"row":   func(db *sql.DB) error { return db.QueryRowContext(ctx, tt.query, tt.args...).Scan(&id) },
					"tx": func(db *sql.DB) error {
						tx, err := db.BeginTx(t.Context(), nil)
						if err != nil {
							return err
						}
						defer tx.Rollback()
						return ways["prepared exec"](ctx, tx, tt.query, tt.args...)
					},
				} {
					if tt.name == "no rows" && way != "row" {
						continue // only Scan tells
					}
					unchanged := s.unchanged(t)
					errRaw, errFenced := run(s.plain), run(s.db)
					if errRaw == nil || said(errFenced) != said(errRaw) {
						t.Errorf("%s fenced: %T %[2]v\n   raw: %T %[3]v", way, errFenced, errRaw)
					}
					if tt.is != nil && !errors.Is(errFenced, tt.is) {
						t.Errorf("%s: %v isn't %v", way, errFenced, tt.is)
					}
					if i := slices.IndexFunc(sentinels, func(s error) bool { return errors.Is(errFenced, s) }); i >= 0 {
						t.Errorf("%s: %v is %v", way, errFenced, sentinels[i])
					}
					unchanged()
				}
			})
		})
	}
}

// A cancelled statement that waits for a row comes back with the base driver's
// own error, and the connection serves on.
func TestErrorsCancelledWhileWaiting(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		if b.dialect != sqlfence.Postgres {
			t.Skip("SQLite waits for the whole file, and not by the context")
		}
		s := newShop(t, b, sqlfence.RowFence("fence_token"))
		s.reset(t, 5)
		var texts []string
		for _, db := range []*sql.DB{s.plain, s.db} {
			holder, err := s.plain.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := holder.Exec(setPrice, 20, 1); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(holding(t, 7))
			done := make(chan error, 1)
			go func() { _, err := db.ExecContext(ctx, setPrice, 30, 1); done <- err }()
			eventually(t, "the statement waits", func() bool {
				var n int
				err := s.plain.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE books%'").Scan(&n)
				return err == nil && n > 0
			})
			cancel()
			err = <-done
			texts = append(texts, fmt.Sprintf("%T %[1]v", err))
			if err := holder.Rollback(); err != nil {
				t.Error(err)
			}
		}
		if texts[0] != texts[1] {
			t.Errorf("fenced: %s\n   raw: %s", texts[1], texts[0])
		}
		if _, err := s.db.ExecContext(holding(t, 7), setPrice, 30, 1); err != nil {
			t.Error(err)
		}
	})
}
