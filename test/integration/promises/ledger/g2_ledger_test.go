package ledger_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// Once token t has been issued or adopted for a name, no write with a token < t
// commits on the tables that this name guards.

func TestG2LedgerRefusesAnOlderToken(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.Ledger())
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for _, w := range slices.Concat(harness.RowWrites, harness.FreshInserts) {
				sh.Reset(t, 8)
				if _, err := sh.Issue(t.Context()); err != nil {
					t.Fatal(err)
				}
				unchanged := sh.Unchanged(t)
				_, err := send(harness.Holding(t, 8), w)
				harness.WantStale(t, err, 8, 9)
				unchanged()
				if t.Failed() {
					t.Fatalf("by %s", w.Name)
				}
			}
		})
	})
}

// The newest token passes, including a foreign token after its adoption.
func TestG2LedgerLetsTheNewestTokenPass(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.Ledger())
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for _, w := range slices.Concat(harness.RowWrites, harness.FreshInserts) {
				for _, value := range []int64{9, sqlfence.MaxToken} {
					sh.Reset(t, 9)
					sh.Raise(t, "books", value)
					before := sh.State(t, false)
					if n, err := send(harness.Holding(t, value), w); n == 0 || err != nil {
						t.Errorf("%s with token %d: %d rows, %v", w.Name, value, n, err)
					}
					if after := sh.State(t, false); after == before {
						t.Errorf("%s with token %d changed nothing", w.Name, value)
					}
				}
			}
		})
	})
}

// A token higher than the newest one was made up, or the ledger has lost it.
func TestG2LedgerRefusesATokenThatNobodyIssued(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.Ledger())
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for _, w := range slices.Concat(harness.RowWrites, harness.FreshInserts) {
				for _, c := range []struct{ token, current int64 }{{10, 9}, {sqlfence.MaxToken, 9}, {5, 0}} {
					sh.Reset(t, c.current)
					unchanged := sh.Unchanged(t)
					_, err := send(harness.Holding(t, c.token), w)
					harness.WantNotIssued(t, err, c.token, c.current)
					unchanged()
				}
			}
		})
	})
}

// The same is tried with kinds of write that not all forms can send.
func TestG2LedgerRefusesATokenThatNobodyIssuedInEveryKindOfWrite(t *testing.T) {
	writes := map[sqlfence.Dialect][]harness.Write{
		sqlfence.Postgres: {
			{Name: "merge", Query: "MERGE INTO books USING (SELECT $1::int AS id) AS s ON books.id = s.id WHEN MATCHED THEN UPDATE SET price = 30", Args: []any{1}},
			{Name: "merge of a new row", Query: "MERGE INTO books USING (SELECT $1::int AS id) AS s ON books.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)", Args: []any{7}},
			{Name: "merge that deletes", Query: "MERGE INTO books USING (SELECT $1::int AS id) AS s ON books.id = s.id WHEN MATCHED THEN DELETE", Args: []any{1}},
			{Name: "write in WITH", Query: "WITH w AS (UPDATE books SET price = 30 WHERE id = $1 RETURNING id) SELECT * FROM w", Args: []any{1}},
			{Name: "several in WITH", Query: "WITH w AS (DELETE FROM books WHERE id = $1), v AS (INSERT INTO books (id) VALUES (7)) UPDATE books SET price = 30 WHERE id = 2", Args: []any{1}},
			{Name: "explain analyze", Query: "EXPLAIN ANALYZE UPDATE books SET price = 30 WHERE id = 1", Args: nil},
		},
		sqlfence.SQLite: {
			{Name: "behind WITH", Query: "WITH w AS (SELECT 1 AS id) UPDATE books SET price = 30 WHERE id IN (SELECT id FROM w) AND id = ?", Args: []any{1}},
			{Name: "or ignore", Query: "UPDATE OR IGNORE books SET price = 30 WHERE id = ?", Args: []any{1}},
		},
		sqlfence.MySQL: {
			{Name: "ignore", Query: "UPDATE LOW_PRIORITY IGNORE books SET price = 30 WHERE id = ?", Args: []any{1}},
			{Name: "one of several", Query: "UPDATE books SET price = 30 WHERE id < ? ORDER BY id DESC LIMIT 1", Args: []any{3}},
			{Name: "delete and ignore", Query: "DELETE QUICK IGNORE FROM books WHERE id = ?", Args: []any{1}},
			{Name: "set", Query: "INSERT INTO books SET isbn = 'i7', id = ?", Args: []any{7}},
			{Name: "insert and ignore", Query: "INSERT IGNORE INTO books (id, isbn) VALUES (?, 'i7')", Args: []any{7}},
			{Name: "upsert and ignore", Query: "INSERT IGNORE INTO books (id) VALUES (?) ON DUPLICATE KEY UPDATE price = 30", Args: []any{1}},
		},
	}
	both := []sqlfence.Rule{sqlfence.Ledger(), sqlfence.RowFence("fence_token")}
	for n, rules := range [][]sqlfence.Rule{both[:1], both} {
		harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
			sh := s.Shop(t, rules...)
			for _, w := range writes[s.Dialect] {
				if harness.Lacks(t, sh.Plain, w.Query) {
					continue
				}
				for _, f := range []harness.Form{harness.Forms[0], harness.Forms[2]} {
					sh.Reset(t, 9)
					unchanged := sh.Unchanged(t)
					_, err := f.Run(harness.Holding(t, 10), sh.DB, w)
					harness.WantNotIssued(t, err, 10, 9)
					tx, err := sh.DB.BeginTx(t.Context(), nil)
					if err != nil {
						t.Fatal(err)
					}
					_, err = f.Run(harness.Holding(t, 10), tx, w)
					harness.WantNotIssued(t, err, 10, 9)
					if err := tx.Rollback(); err != nil {
						t.Error(err)
					}
					unchanged()
					_, err = f.Run(harness.Holding(t, 8), sh.DB, w)
					harness.WantStale(t, err, 8, 9)
					unchanged()
					if t.Failed() {
						t.Fatalf("rules %d: %s, %s", n, w.Name, f.Name)
					}
					if _, err := f.Run(harness.Holding(t, 9), sh.DB, w); err != nil {
						t.Errorf("rules %d: %s, %s with the newest token: %v", n, w.Name, f.Name, err)
					}
				}
			}
		})
	}
}

// A name was added to the ledger, and no token was issued yet. No token passes, whatever value the row has.
func TestG2LedgerOfANameWithoutATokenRefusesAll(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.Setting{Base: b}.Shop(t, sqlfence.Ledger())
		sh.Reset(t, 0)
		sh.Exec(t, "DROP TABLE fencing_tokens")
		sh.Exec(t, "CREATE TABLE fencing_tokens (name "+b.LedgerName()+" NOT NULL PRIMARY KEY, token bigint)")
		if b.AsksByFunction() {
			sh.Exec(t, tokens.LedgerFunction())
		}
		for _, none := range []string{"NULL", "0", "-3"} {
			sh.Exec(t, "DELETE FROM fencing_tokens")
			sh.Exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ('books', "+none+")")
			for _, w := range slices.Concat(harness.RowWrites, harness.FreshInserts) {
				unchanged := sh.Unchanged(t)
				_, err := harness.Forms[0].Run(harness.Holding(t, 5), sh.DB, w.As(b.Dialect))
				current := int64(0)
				if none == "-3" {
					current = -3
				}
				harness.WantNotIssued(t, err, 5, current)
				unchanged()
			}
		}
	})
}

// With Key the token of each row has to be the newest token of the row's own name.
func TestG2LedgerWithKeyRefusesATokenThatNobodyIssued(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, rules := range [][]sqlfence.Rule{
			{sqlfence.Key("id"), sqlfence.Ledger()},
			{sqlfence.Key("id"), sqlfence.Ledger(), sqlfence.RowFence("fence_token")},
		} {
			sh := harness.Setting{Base: b}.Shop(t, rules...)
			sh.Reset(t, 0)
			sh.Raise(t, "books/1", 9)
			sh.Raise(t, "books/2", 3)
			for _, w := range harness.RowWrites {
				unchanged := sh.Unchanged(t)
				made := sqlfence.Token{Name: "books/1", Value: 10}
				_, err := harness.Forms[0].Run(sqlfence.WithFence(t.Context(), made, sqlfence.Token{Name: "books/2", Value: 3}), sh.DB, w.As(b.Dialect))
				var refused *sqlfence.NotIssuedError
				if !errors.As(err, &refused) || refused.Token != made || refused.Current != 9 {
					t.Errorf("%s: %v, want ErrNotIssued of %v", w.Name, err, made)
				}
				unchanged()
			}
		}
	})
}

// If the ledger has no unique index, a name may have two rows, except in PostgreSQL, whose guard fails then. The guard
// compares the higher token, so neither row hides it.
func TestG2LedgerWithANameTwiceComparesWithTheHighest(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect == sqlfence.Postgres {
			t.Skip("it refuses a subquery of two rows")
		}
		sh := harness.Setting{Base: b}.Shop(t, sqlfence.Ledger())
		sh.Exec(t, "DROP TABLE fencing_tokens")
		sh.Exec(t, "CREATE TABLE fencing_tokens (name "+b.LedgerName()+", token bigint)")
		for _, rows := range []string{"('books', 3), ('books', 9)", "('books', 9), ('books', 3)", "('books', NULL), ('books', 9), ('books', 0)"} {
			sh.Exec(t, "DELETE FROM books")
			sh.Exec(t, "INSERT INTO books (id, isbn) VALUES (1, 'i1')")
			sh.Exec(t, "DELETE FROM fencing_tokens")
			sh.Exec(t, "INSERT INTO fencing_tokens (name, token) VALUES "+rows)
			unchanged := sh.Unchanged(t)
			for _, w := range slices.Concat(harness.RowWrites, harness.FreshInserts) {
				_, err := harness.Forms[0].Run(harness.Holding(t, 3), sh.DB, w.As(b.Dialect))
				harness.WantStale(t, err, 3, 9)
				_, err = harness.Forms[0].Run(harness.Holding(t, 10), sh.DB, w.As(b.Dialect))
				harness.WantNotIssued(t, err, 10, 9)
			}
			unchanged()
			if _, err := harness.Forms[0].Run(harness.Holding(t, 9), sh.DB, harness.RowWrites[0].As(b.Dialect)); err != nil {
				t.Errorf("%s: the newest token: %v", rows, err)
			}
		}
	})
}

// Observe mode reports a token that nobody issued, and doesn't store it in rows: every token issued later would be
// stale.
func TestG2LedgerObservesATokenThatNobodyIssued(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.Setting{Base: b}.Shop(t)
		var events []sqlfence.Event
		db := b.Fenced(t, sh.Source, harness.Books(sqlfence.Ledger(), sqlfence.RowFence("fence_token")), sqlfence.WithMode(sqlfence.Observe),
			sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { events = append(events, e) }))
		for _, w := range slices.Concat(harness.RowWrites, harness.FreshInserts) {
			sh.Reset(t, 9)
			events = nil
			before := sh.State(t, false)
			if n, err := harness.Forms[0].Run(harness.Holding(t, 10), db, w.As(b.Dialect)); n == 0 || err != nil {
				t.Errorf("%s: %d rows, %v", w.Name, n, err)
			}
			if sh.State(t, false) == before {
				t.Errorf("%s changed nothing", w.Name)
			}
			if after := sh.State(t, true); strings.Contains(after, "@10") {
				t.Errorf("%s: a token that nobody issued became a mark: %s", w.Name, after)
			}
			if len(events) != 1 || events[0].Kind != sqlfence.WouldRefuse || !errors.Is(events[0].Err, sqlfence.ErrNotIssued) {
				t.Errorf("%s: events %v, want one WouldRefuse with ErrNotIssued", w.Name, events)
			}
		}
	})
}

// Retry runs its function once: a token that nobody issued stays so when the transaction is run again. Only Adopt would
// change this, and Retry doesn't wait for it.
func TestRetryNeverRepeatsATokenThatNobodyIssued(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.Setting{Base: b}.Shop(t, sqlfence.Ledger())
		sh.Reset(t, 9)
		runs := 0
		err := sqlfence.Retry(harness.Holding(t, 10), sh.DB, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
			runs++
			_, err := tx.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1")
			return err
		})
		harness.WantNotIssued(t, err, 10, 9)
		if runs != 1 {
			t.Errorf("%d runs, want 1", runs)
		}
	})
}

// A name without a row in the ledger has no token to compare with, so the write fails.
func TestG2LedgerRefusesAnUnknownName(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.Ledger())
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for _, w := range slices.Concat(harness.RowWrites, harness.FreshInserts) {
				sh.Reset(t, 1)
				sh.Exec(t, "DELETE FROM fencing_tokens")
				unchanged := sh.Unchanged(t)
				_, err := send(harness.Holding(t, 1), w)
				harness.WantError(t, err, sqlfence.ErrUnknownName)
				unchanged()
			}
		})
	})
}

// Several tables may share a name, and a name guards only its tables.
func TestG2LedgerGuardsByResource(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t)
		db := s.Fenced(t, sh.Source,
			harness.Books(sqlfence.Resource("shop")), sqlfence.WithTable("pens", sqlfence.Resource("shop")))
		sh.Raise(t, "shop", 9)
		sh.Raise(t, "books", 1)
		for value, want := range map[int64]error{8: sqlfence.ErrStale, 9: nil} {
			sh.Reset(t, 1)
			ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "shop", Value: value})
			for _, query := range []string{"UPDATE books SET price = 30", "INSERT INTO pens (id, price) VALUES (1, 1)"} {
				if _, err := db.ExecContext(ctx, query); want == nil && err != nil {
					t.Errorf("%s with token %d: %v", query, value, err)
				} else if want != nil {
					harness.WantError(t, err, want)
				}
			}
		}
		_, err := db.ExecContext(harness.Holding(t, 1), "UPDATE books SET price = 30")
		harness.WantError(t, err, sqlfence.ErrNoFence)
	})
}

// Under both rules a write must pass both checks.
func TestG2LedgerTogetherWithRowFence(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.Ledger(), sqlfence.RowFence("fence_token"))
		for _, w := range harness.RowWrites {
			for _, c := range []struct{ row, ledger, token, current int64 }{{9, 8, 8, 9}, {1, 9, 8, 9}, {9, 9, 9, 0}} {
				sh.Reset(t, c.row)
				sh.Raise(t, "books", c.ledger)
				unchanged := sh.Unchanged(t)
				n, err := harness.Forms[0].Run(harness.Holding(t, c.token), sh.DB, w)
				if c.current == 0 {
					if n != s.Updated(w) || err != nil {
						t.Errorf("%s: %d rows, %v", w.Name, n, err)
					}
					continue
				}
				harness.WantStale(t, err, c.token, c.current)
				unchanged()
			}
		}
	})
}

// A transaction whose snapshot is older than its token can't know that the token is the newest. The error is a
// serialization failure, after which the caller tries again, and not ErrNotIssued.
func TestG2TokenNewerThanTheSnapshot(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.Ledger())
		sh.Reset(t, 8)
		var ctx context.Context
		tries := 0
		opts := sqlfence.RetryOptions{Tx: &sql.TxOptions{Isolation: s.Level}}
		err := sqlfence.Retry(t.Context(), sh.DB, opts, func(retried context.Context, tx *sql.Tx) error {
			tries++
			if _, err := harness.Returned(tx.QueryContext(retried, "SELECT id FROM pens")); err != nil {
				return err
			}
			if ctx == nil {
				newest, err := sh.Issue(retried)
				if err != nil {
					return err
				}
				ctx = harness.Holding(t, newest)
			}
			_, err := tx.ExecContext(ctx, "UPDATE books SET price = 30")
			if errors.Is(err, sqlfence.ErrNotIssued) {
				t.Errorf("a token that was issued after the snapshot: %v", err)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 2, false: 1}[s.Level > sql.LevelReadCommitted]; tries != want {
			t.Errorf("tried %d times, want %d", tries, want)
		}
	})
}
