package drivers

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// Once token t has been issued or adopted for a name, no write with a token < t
// commits on the tables that this name guards.

func TestG2LedgerRefusesAnOlderToken(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger())
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, w := range slices.Concat(rowWrites, freshInserts) {
				sh.reset(t, 8)
				if _, err := sh.issue(t.Context()); err != nil {
					t.Fatal(err)
				}
				unchanged := sh.unchanged(t)
				_, err := send(holding(t, 8), w)
				wantStale(t, err, 8, 9)
				unchanged()
				if t.Failed() {
					t.Fatalf("by %s", w.name)
				}
			}
		})
	})
}

// The newest token passes, also one from elsewhere once it has been adopted.
func TestG2LedgerLetsTheNewestTokenPass(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger())
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, w := range slices.Concat(rowWrites, freshInserts) {
				for _, value := range []int64{9, sqlfence.MaxToken} {
					sh.reset(t, 9)
					sh.raise(t, "books", value)
					before := sh.state(t, false)
					if n, err := send(holding(t, value), w); n == 0 || err != nil {
						t.Errorf("%s with token %d: %d rows, %v", w.name, value, n, err)
					}
					if after := sh.state(t, false); after == before {
						t.Errorf("%s with token %d changed nothing", w.name, value)
					}
				}
			}
		})
	})
}

// A token higher than the newest one was made up, or has been lost.
func TestG2LedgerRefusesATokenThatNobodyIssued(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger())
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, w := range slices.Concat(rowWrites, freshInserts) {
				for _, c := range []struct{ token, current int64 }{{10, 9}, {sqlfence.MaxToken, 9}, {5, 0}} {
					sh.reset(t, c.current)
					unchanged := sh.unchanged(t)
					_, err := send(holding(t, c.token), w)
					wantNotIssued(t, err, c.token, c.current)
					unchanged()
				}
			}
		})
	})
}

// The same of the kinds of write that not all forms can send.
func TestG2LedgerRefusesATokenThatNobodyIssuedInEveryKindOfWrite(t *testing.T) {
	writes := map[sqlfence.Dialect][]write{
		sqlfence.Postgres: {
			{"merge", "MERGE INTO books USING (SELECT $1::int AS id) AS s ON books.id = s.id WHEN MATCHED THEN UPDATE SET price = 30", []any{1}},
			{"merge of a new row", "MERGE INTO books USING (SELECT $1::int AS id) AS s ON books.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)", []any{7}},
			{"merge that deletes", "MERGE INTO books USING (SELECT $1::int AS id) AS s ON books.id = s.id WHEN MATCHED THEN DELETE", []any{1}},
			{"write in WITH", "WITH w AS (UPDATE books SET price = 30 WHERE id = $1 RETURNING id) SELECT * FROM w", []any{1}},
			{"several in WITH", "WITH w AS (DELETE FROM books WHERE id = $1), v AS (INSERT INTO books (id) VALUES (7)) UPDATE books SET price = 30 WHERE id = 2", []any{1}},
			{"explain analyze", "EXPLAIN ANALYZE UPDATE books SET price = 30 WHERE id = 1", nil},
		},
		sqlfence.SQLite: {
			{"behind WITH", "WITH w AS (SELECT 1 AS id) UPDATE books SET price = 30 WHERE id IN (SELECT id FROM w) AND id = ?", []any{1}},
			{"or ignore", "UPDATE OR IGNORE books SET price = 30 WHERE id = ?", []any{1}},
		},
	}
	both := []sqlfence.Rule{sqlfence.Ledger(), sqlfence.RowFence("fence_token")}
	for n, rules := range [][]sqlfence.Rule{both[:1], both} {
		eachSetting(t, func(t *testing.T, s setting) {
			sh := s.shop(t, rules...)
			for _, w := range writes[s.dialect] {
				for _, f := range []form{forms[0], forms[2]} {
					sh.reset(t, 9)
					unchanged := sh.unchanged(t)
					_, err := f.run(holding(t, 10), sh.db, w)
					wantNotIssued(t, err, 10, 9)
					tx, err := sh.db.BeginTx(t.Context(), nil)
					if err != nil {
						t.Fatal(err)
					}
					_, err = f.run(holding(t, 10), tx, w)
					wantNotIssued(t, err, 10, 9)
					if err := tx.Rollback(); err != nil {
						t.Error(err)
					}
					unchanged()
					_, err = f.run(holding(t, 8), sh.db, w)
					wantStale(t, err, 8, 9)
					unchanged()
					if t.Failed() {
						t.Fatalf("rules %d: %s, %s", n, w.name, f.name)
					}
					if _, err := f.run(holding(t, 9), sh.db, w); err != nil {
						t.Errorf("rules %d: %s, %s with the newest token: %v", n, w.name, f.name, err)
					}
				}
			}
		})
	}
}

// A name that has been made known, and has had no token yet, has none that could
// pass: whatever stands for "none" in the table.
func TestG2LedgerOfANameWithoutATokenRefusesAll(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{base: b}.shop(t, sqlfence.Ledger())
		sh.reset(t, 0)
		sh.exec(t, "DROP TABLE fencing_tokens")
		sh.exec(t, "CREATE TABLE fencing_tokens (name text NOT NULL PRIMARY KEY, token bigint)")
		for _, none := range []string{"NULL", "0", "-3"} {
			sh.exec(t, "DELETE FROM fencing_tokens")
			sh.exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ('books', "+none+")")
			for _, w := range slices.Concat(rowWrites, freshInserts) {
				unchanged := sh.unchanged(t)
				_, err := forms[0].run(holding(t, 5), sh.db, w.as(b.dialect))
				current := int64(0)
				if none == "-3" {
					current = -3
				}
				wantNotIssued(t, err, 5, current)
				unchanged()
			}
		}
	})
}

// With Key the token of each row has to be the newest one of its own name.
func TestG2LedgerWithKeyRefusesATokenThatNobodyIssued(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		for _, rules := range [][]sqlfence.Rule{
			{sqlfence.Key("id"), sqlfence.Ledger()},
			{sqlfence.Key("id"), sqlfence.Ledger(), sqlfence.RowFence("fence_token")},
		} {
			sh := setting{base: b}.shop(t, rules...)
			sh.reset(t, 0)
			sh.raise(t, "books/1", 9)
			sh.raise(t, "books/2", 3)
			for _, w := range rowWrites {
				unchanged := sh.unchanged(t)
				made := sqlfence.Token{Name: "books/1", Value: 10}
				_, err := forms[0].run(sqlfence.WithFence(t.Context(), made, sqlfence.Token{Name: "books/2", Value: 3}), sh.db, w.as(b.dialect))
				var refused *sqlfence.NotIssuedError
				if !errors.As(err, &refused) || refused.Token != made || refused.Current != 9 {
					t.Errorf("%s: %v, want ErrNotIssued of %v", w.name, err, made)
				}
				unchanged()
			}
		}
	})
}

// Without a unique index a name may stand in SQLite's ledger twice. The higher
// one counts, so that no row hides it.
func TestG2LedgerWithANameTwiceComparesWithTheHighest(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		if b.dialect != sqlfence.SQLite {
			t.Skip("PostgreSQL refuses a subquery of two rows")
		}
		sh := setting{base: b}.shop(t, sqlfence.Ledger())
		sh.exec(t, "DROP TABLE fencing_tokens")
		sh.exec(t, "CREATE TABLE fencing_tokens (name text, token bigint)")
		for _, rows := range []string{"('books', 3), ('books', 9)", "('books', 9), ('books', 3)", "('books', NULL), ('books', 9), ('books', 0)"} {
			sh.exec(t, "DELETE FROM books")
			sh.exec(t, "INSERT INTO books (id, isbn) VALUES (1, 'i1')")
			sh.exec(t, "DELETE FROM fencing_tokens")
			sh.exec(t, "INSERT INTO fencing_tokens (name, token) VALUES "+rows)
			unchanged := sh.unchanged(t)
			for _, w := range slices.Concat(rowWrites, freshInserts) {
				_, err := forms[0].run(holding(t, 3), sh.db, w.as(b.dialect))
				wantStale(t, err, 3, 9)
				_, err = forms[0].run(holding(t, 10), sh.db, w.as(b.dialect))
				wantNotIssued(t, err, 10, 9)
			}
			unchanged()
			if _, err := forms[0].run(holding(t, 9), sh.db, rowWrites[0].as(b.dialect)); err != nil {
				t.Errorf("%s: the newest token: %v", rows, err)
			}
		}
	})
}

// Observe mode tells of such a token, and keeps it out of the rows: as their mark
// it would refuse every token that is ever issued.
func TestG2LedgerObservesATokenThatNobodyIssued(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{base: b}.shop(t)
		var events []sqlfence.Event
		db := b.fenced(t, sh.source, books(sqlfence.Ledger(), sqlfence.RowFence("fence_token")), sqlfence.WithMode(sqlfence.Observe),
			sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { events = append(events, e) }))
		for _, w := range slices.Concat(rowWrites, freshInserts) {
			sh.reset(t, 9)
			events = nil
			before := sh.state(t, false)
			if n, err := forms[0].run(holding(t, 10), db, w.as(b.dialect)); n == 0 || err != nil {
				t.Errorf("%s: %d rows, %v", w.name, n, err)
			}
			if sh.state(t, false) == before {
				t.Errorf("%s changed nothing", w.name)
			}
			if after := sh.state(t, true); strings.Contains(after, "@10") {
				t.Errorf("%s: a token that nobody issued became a mark: %s", w.name, after)
			}
			if len(events) != 1 || events[0].Kind != sqlfence.WouldRefuse || !errors.Is(events[0].Err, sqlfence.ErrNotIssued) {
				t.Errorf("%s: events %v, want one WouldRefuse with ErrNotIssued", w.name, events)
			}
		}
	})
}

// Retry runs its function once: nothing that happens in between makes the token
// an issued one, but its adoption, which is not Retry's to wait for.
func TestRetryNeverRepeatsATokenThatNobodyIssued(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		sh := setting{base: b}.shop(t, sqlfence.Ledger())
		sh.reset(t, 9)
		runs := 0
		err := sqlfence.Retry(holding(t, 10), sh.db, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
			runs++
			_, err := tx.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1")
			return err
		})
		wantNotIssued(t, err, 10, 9)
		if runs != 1 {
			t.Errorf("%d runs, want 1", runs)
		}
	})
}

// A name that the ledger doesn't know would compare with nothing, so it fails.
func TestG2LedgerRefusesAnUnknownName(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger())
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, w := range slices.Concat(rowWrites, freshInserts) {
				sh.reset(t, 1)
				sh.exec(t, "DELETE FROM fencing_tokens")
				unchanged := sh.unchanged(t)
				_, err := send(holding(t, 1), w)
				wantError(t, err, sqlfence.ErrUnknownName)
				unchanged()
			}
		})
	})
}

// Several tables may hang on one name, and a name guards only its own tables.
func TestG2LedgerGuardsByResource(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t)
		db := s.fenced(t, sh.source,
			books(sqlfence.Resource("shop")), sqlfence.WithTable("pens", sqlfence.Resource("shop")))
		sh.raise(t, "shop", 9)
		sh.raise(t, "books", 1)
		for value, want := range map[int64]error{8: sqlfence.ErrStale, 9: nil} {
			sh.reset(t, 1)
			ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "shop", Value: value})
			for _, query := range []string{"UPDATE books SET price = 30", "INSERT INTO pens (id, price) VALUES (1, 1)"} {
				if _, err := db.ExecContext(ctx, query); want == nil && err != nil {
					t.Errorf("%s with token %d: %v", query, value, err)
				} else if want != nil {
					wantError(t, err, want)
				}
			}
		}
		_, err := db.ExecContext(holding(t, 1), "UPDATE books SET price = 30")
		wantError(t, err, sqlfence.ErrNoFence)
	})
}

// With both rules a write has to pass both.
func TestG2LedgerTogetherWithRowFence(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger(), sqlfence.RowFence("fence_token"))
		for _, w := range rowWrites {
			for _, c := range []struct{ row, ledger, token, current int64 }{{9, 8, 8, 9}, {1, 9, 8, 9}, {9, 9, 9, 0}} {
				sh.reset(t, c.row)
				sh.raise(t, "books", c.ledger)
				unchanged := sh.unchanged(t)
				n, err := forms[0].run(holding(t, c.token), sh.db, w)
				if c.current == 0 {
					if n != 1 || err != nil {
						t.Errorf("%s: %d rows, %v", w.name, n, err)
					}
					continue
				}
				wantStale(t, err, c.token, c.current)
				unchanged()
			}
		}
	})
}

// A transaction whose snapshot is older than its token can't know that the token is the
// newest. That is a serialization failure, after which it is tried again, and no token
// that was never issued.
func TestG2TokenNewerThanTheSnapshot(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger())
		sh.reset(t, 8)
		var ctx context.Context
		tries := 0
		opts := sqlfence.RetryOptions{Tx: &sql.TxOptions{Isolation: s.level}}
		err := sqlfence.Retry(t.Context(), sh.db, opts, func(retried context.Context, tx *sql.Tx) error {
			tries++
			if _, err := returned(tx.QueryContext(retried, "SELECT id FROM pens")); err != nil {
				return err
			}
			if ctx == nil {
				newest, err := sh.issue(retried)
				if err != nil {
					return err
				}
				ctx = holding(t, newest)
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
		if want := map[bool]int{true: 2, false: 1}[s.level > sql.LevelReadCommitted]; tries != want {
			t.Errorf("tried %d times, want %d", tries, want)
		}
	})
}
