package tokens_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// rotating is a shop with a fence column so high that no issued token can write.
type rotating struct {
	plain *sql.DB
	store *tokens.Store
	open  func(opts ...sqlfence.Option) *sql.DB
}

// eachRotating runs test on every base, with a Store on a bare and a fenced database.
func eachRotating(t *testing.T, test func(t *testing.T, b harness.Base, r rotating)) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, fenced := range []bool{false, true} {
			t.Run(fmt.Sprintf("fenced=%v", fenced), func(t *testing.T) {
				dsn := b.DSN(t)
				r := rotating{plain: b.Raw(t, dsn)}
				r.open = func(opts ...sqlfence.Option) *sql.DB { return b.Fenced(t, dsn, opts...) }
				db := r.plain
				if fenced {
					db = r.open(sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
				}
				r.store = setupStore(t, db)
				harness.MustExec(t, r.plain, "CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token bigint)")
				harness.MustExec(t, r.plain, "INSERT INTO books VALUES (1, 10, 800000000000000), (2, 10, 800000000000000), (3, 10, 0), (4, 10, NULL)")
				test(t, b, r)
			})
		}
	})
}

func setPrices(t *testing.T, db *sql.DB, token sqlfence.Token) error {
	t.Helper()
	_, err := db.ExecContext(sqlfence.WithFence(t.Context(), token), "UPDATE books SET price = price + 1")
	return err
}

func TestTokensRotate(t *testing.T) {
	eachRotating(t, func(t *testing.T, b harness.Base, r rotating) {
		ctx := t.Context()
		rowOnly := r.open(sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
		both := r.open(sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
		old := sqlfence.Token{Name: "books", Value: harness.IssueToken(t, r.store, "books")}
		harness.WantError(t, setPrices(t, rowOnly, old), sqlfence.ErrStale)
		for _, name := range []string{"books/1", "books/x/y", "booksellers", "books-3"} {
			harness.IssueToken(t, r.store, name)
		}

		n, err := r.store.Rotate(ctx, "books", rowMark, tokens.RetireAll())
		if n != 2 || err != nil {
			t.Fatalf("Rotate = %d, %v; want 2 marks", n, err)
		}
		retired := fmt.Sprint(int64(sqlfence.MaxToken + 1))
		harness.WantLedger(t, r.plain, append(floorRow(b, 1),
			"books="+retired, "books-3=1", "books/1="+retired, "books/x/y="+retired, "booksellers=1")...)

		second := sqlfence.Resource("books-2")
		rowOnly2 := r.open(sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), second))
		both2 := r.open(sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger(), second))
		fresh := sqlfence.Token{Name: "books-2", Value: harness.IssueToken(t, r.store, "books-2")}
		if fresh.Value != 2 { // above the tokens of the retired names
			t.Errorf("first token of the new name = %d", fresh.Value)
		}
		for _, db := range []*sql.DB{rowOnly2, both2} {
			if err := setPrices(t, db, fresh); err != nil {
				t.Errorf("the new name's token: %v", err)
			}
		}
		for _, value := range []int64{old.Value, 800_000_000_000_000, sqlfence.MaxToken} {
			harness.WantError(t, setPrices(t, both, sqlfence.Token{Name: "books", Value: value}), sqlfence.ErrStale)
		}
		harness.WantError(t, setPrices(t, both2, old), sqlfence.ErrNoFence)
		if err := setPrices(t, rowOnly2, fresh); err != nil {
			t.Errorf("the new name's token after the old one's: %v", err)
		}
		for _, name := range []string{"books", "books/1"} {
			if _, err := r.store.Issue(ctx, name); !errors.Is(err, sqlfence.ErrTokenLimit) {
				t.Errorf("Issue of the retired %s: %v", name, err)
			}
			if err := r.store.Adopt(ctx, sqlfence.Token{Name: name, Value: sqlfence.MaxToken}); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("Adopt of the retired %s: %v", name, err)
			}
			if _, err := harness.NewLeases(t, r.plain).Acquire(ctx, name); !errors.Is(err, sqlfence.ErrTokenLimit) {
				t.Errorf("Acquire of the retired %s: %v", name, err)
			}
		}
		if n, err := r.store.Rotate(ctx, "books"); n != 0 || err != nil {
			t.Errorf("Rotate again = %d, %v", n, err)
		}
		if err := setPrices(t, both2, fresh); err != nil {
			t.Errorf("after Rotate again: %v", err)
		}
	})
}

// If a new name's tokens can be above a stored token, Rotate doesn't set it back. So an old holder that wakes up late
// is still refused, by the old stored tokens and by those of new holders.
func TestRotateSetsBackNoHonestMark(t *testing.T) {
	eachRotating(t, func(t *testing.T, b harness.Base, r rotating) {
		ctx := t.Context()
		old := r.open(sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
		renewed := r.open(sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Resource("books-2")))
		harness.IssueToken(t, r.store, "books")
		harness.MustExec(t, r.plain, "UPDATE books SET fence_token = 41 WHERE id = 3")
		if n, err := r.store.Rotate(ctx, "books", rowMark); n != 2 || err != nil {
			t.Fatalf("Rotate = %d, %v; want 2 marks", n, err)
		}
		late := func(value int64, id int) error {
			_, err := old.ExecContext(sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: value}),
				fmt.Sprintf("UPDATE books SET price = 66 WHERE id = %d", id))
			return err
		}
		for id := range 3 {
			harness.WantError(t, late(40, id+1), sqlfence.ErrStale)
		}
		fresh := sqlfence.Token{Name: "books-2", Value: harness.IssueToken(t, r.store, "books-2")}
		if err := setPrices(t, renewed, fresh); err != nil {
			t.Errorf("the new name's token: %v", err)
		}
		for id := range 4 {
			harness.WantError(t, late(41, id+1), sqlfence.ErrStale)
		}
	})
}

// Rotate changes everything or nothing. With an invalid name it changes nothing.
func TestTokensRotateChangesNothing(t *testing.T) {
	eachRotating(t, func(t *testing.T, b harness.Base, r rotating) {
		harness.IssueToken(t, r.store, "books")
		for _, test := range []struct {
			name, rotate string
			marks        []tokens.RotateOption
			want         error
		}{
			{"unknown name", "bokos", []tokens.RotateOption{rowMark}, sqlfence.ErrUnknownName},
			{"empty name", "", []tokens.RotateOption{rowMark}, sqlfence.ErrInvalid},
			{"unknown table", "books", []tokens.RotateOption{rowMark, tokens.Mark{Table: "bokos", Column: "fence_token"}}, nil},
			{"unknown column", "books", []tokens.RotateOption{rowMark, tokens.Mark{Table: "books", Column: "fnce"}}, nil},
			{"no table", "books", []tokens.RotateOption{rowMark, tokens.Mark{Column: "fence_token"}}, sqlfence.ErrInvalid},
			{"no column", "books", []tokens.RotateOption{rowMark, tokens.Mark{Table: "books"}}, sqlfence.ErrInvalid},
			{"not a name", "books", []tokens.RotateOption{tokens.Mark{Table: "books SET price = 0 --", Column: "fence_token"}}, sqlfence.ErrInvalid},
			{"not a column", "books", []tokens.RotateOption{tokens.Mark{Table: "books", Column: "price = 0, fence_token"}}, sqlfence.ErrInvalid},
		} {
			n, err := r.store.Rotate(t.Context(), test.rotate, test.marks...)
			if n != 0 || err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("%s: %d, %v; want %v", test.name, n, err, test.want)
			}
			harness.WantLedger(t, r.plain, "books=1")
			var poisoned, cheap int
			if err := r.plain.QueryRow("SELECT count(*), count(CASE WHEN price <> 10 THEN 1 END) FROM books WHERE fence_token > 1").Scan(&poisoned, &cheap); poisoned != 2 || cheap != 0 || err != nil {
				t.Errorf("%s: %d marks and %d prices left, %v", test.name, poisoned, cheap, err)
			}
		}
	})
}

// Rotate parses names as WithTable and RowFence do.
func TestTokensRotateQuotes(t *testing.T) {
	eachRotating(t, func(t *testing.T, b harness.Base, r rotating) {
		schema, table, mark, books := "main", `"Odd ""; .books"`, `"select ""mark"`, "BOOKS"
		switch b.Dialect {
		case sqlfence.MySQL: // table names may be case-sensitive
			table, mark, books = "`odd ; .books`", "`select mark`", "books"
			if err := r.plain.QueryRow("SELECT DATABASE()").Scan(&schema); err != nil {
				t.Fatal(err)
			}
		case sqlfence.Postgres:
			if err := r.plain.QueryRow("SELECT current_schema()").Scan(&schema); err != nil {
				t.Fatal(err)
			}
		}
		harness.IssueToken(t, r.store, "books")
		harness.MustExec(t, r.plain, "CREATE TABLE "+table+" (id integer PRIMARY KEY, "+mark+" bigint)")
		harness.MustExec(t, r.plain, "INSERT INTO "+table+" VALUES (1, -800000000000000)")
		n, err := r.store.Rotate(t.Context(), "books",
			tokens.Mark{Table: schema + "." + table, Column: mark},
			tokens.Mark{Table: books, Column: "Fence_Token"})
		if n != 3 || err != nil {
			t.Errorf("Rotate = %d, %v; want 3 marks", n, err)
		}
	})
}

// Rotate waits for open transactions with writes, and no other write comes in between.
func TestTokensRotateWaitsForWritesUnderWay(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		for _, rule := range []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()} {
			sh := s.Shop(t, rule)
			const high = 800_000_000_000_000
			sh.Reset(t, high)
			store := harness.NewStore(t, sh.DB)
			tx := harness.Begin(t.Context(), t, sh.DB, s.Level)
			if _, err := harness.Forms[0].Run(harness.Holding(t, high), tx, harness.FreshInserts[0]); err != nil {
				t.Fatal(err)
			}
			err := sh.Behind(t, tx, func() error {
				_, err := store.Rotate(context.WithoutCancel(t.Context()), "books", rowMark)
				return err
			})
			if err != nil {
				t.Error(err)
			}
			var marks int
			if err := sh.Plain.QueryRow("SELECT count(*) FROM books WHERE fence_token > 8").Scan(&marks); marks != 0 || err != nil {
				t.Errorf("%d marks left, %v", marks, err)
			}
		}
	})
}

// Rows that the role can't see would keep their marks, so Rotate returns an error.
func TestTokensRotateBehindRowSecurity(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("SQLite has no row-level security")
		}
		dsn := b.DSN(t)
		owner := b.Raw(t, dsn)
		setupStore(t, owner)
		role := "sqlfence_" + strings.ToLower(rand.Text())
		for _, query := range []string{
			"CREATE TABLE books (id integer PRIMARY KEY, fence_token bigint)", "INSERT INTO books VALUES (1, 9), (2, 9)",
			"ALTER TABLE books ENABLE ROW LEVEL SECURITY", "CREATE POLICY one ON books USING (id = 1)",
			"CREATE ROLE " + role, "GRANT ALL ON books, fencing_tokens TO " + role,
			"DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO " + role + "', current_schema()); END $$",
		} {
			harness.MustExec(t, owner, query)
		}
		t.Cleanup(func() {
			for _, query := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
				if _, err := owner.ExecContext(context.Background(), query); err != nil {
					t.Error(err)
				}
			}
		})
		store := harness.NewStore(t, b.Raw(t, dsn+"&role="+role))
		harness.IssueToken(t, store, "books")
		if n, err := store.Rotate(t.Context(), "books", rowMark); err == nil || !strings.Contains(err.Error(), "row-level security") {
			t.Errorf("Rotate = %d, %v", n, err)
		}
		harness.WantLedger(t, owner, "books=1")
	})
}

// A name that a new release already uses isn't retired with the old release, nor a name with a live lease, unless the
// caller requests this.
func TestRotateAsksBeforeItRetiresOtherNames(t *testing.T) {
	eachRotating(t, func(t *testing.T, b harness.Base, r rotating) {
		ctx := t.Context()
		harness.IssueToken(t, r.store, "books")
		refused := func(want ...tokens.Retiring) {
			t.Helper()
			n, err := r.store.Rotate(ctx, "books", rowMark)
			asks := new(tokens.RetireError)
			if n != 0 || !errors.As(err, &asks) || !errors.Is(err, sqlfence.ErrInvalid) || !slices.Equal(asks.Names, want) {
				t.Errorf("Rotate = %d, %v; want it to ask for %v", n, err, want)
			}
			var marks int
			if err := r.plain.QueryRow("SELECT count(*) FROM books WHERE fence_token > 1").Scan(&marks); err != nil || marks != 2 {
				t.Errorf("%d marks are left, %v", marks, err)
			}
		}

		harness.IssueToken(t, r.store, "books/2")
		second := sqlfence.Token{Name: "books/2", Value: 1}
		refused(tokens.Retiring{Token: second})
		if _, err := r.store.Issue(ctx, "books/2"); err != nil {
			t.Errorf("the new name is retired: %v", err)
		}
		if left, err := r.store.Delete(ctx, "books/2"); len(left) > 0 || err != nil {
			t.Fatal(left, err)
		}

		leases := harness.NewLeases(t, r.plain)
		held, err := leases.Acquire(ctx, "books", lease.Resume("worker-7"))
		if err != nil {
			t.Fatal(err)
		}
		refused(tokens.Retiring{Token: held.Token(), Holder: "worker-7", Leased: true})
		if err := held.Release(ctx); err != nil {
			t.Fatal(err)
		}

		harness.IssueToken(t, r.store, "books-2") // a new release that was started too early
		all, err := r.store.Retires(ctx, "books")
		if want := []tokens.Retiring{{Token: held.Token()}}; err != nil || !slices.Equal(all, want) {
			t.Errorf("Retires = %v, %v; want %v", all, err, want)
		}
		if n, err := r.store.Rotate(ctx, "books", rowMark); n != 2 || err != nil {
			t.Errorf("Rotate = %d, %v", n, err)
		}
		if _, err := r.store.Issue(ctx, "books-2"); err != nil {
			t.Error(err)
		}
		if all, err := r.store.Retires(ctx, "books"); len(all) > 0 || err != nil {
			t.Errorf("Retires = %v, %v, after Rotate", all, err)
		}
	})
}
