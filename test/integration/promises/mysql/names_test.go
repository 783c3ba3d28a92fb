package mysql_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// alike are names that a collation takes for equal, or that a session's settings could change.
var alike = []string{
	"books", "Books", "BOOKS", "books ", "books\t", " books", "böoks", "boöks", "bōoks", "ｂooks", "booſs",
	"books😀", "books😁", "books\\", "books\\\\", "books'", "books''", "books\"", "books`", "books%", "books_", "books\x01", "books?", "books--", "books/*", "ß", "ss", "ẞ",
	strings.Repeat("x", 255), strings.Repeat("x", 256), strings.Repeat("x", 511), strings.Repeat("x", 512), strings.Repeat("é", 256), strings.Repeat("é", 255) + "xx",
}

func TestNamesAreBytes(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			dsn := setup(t)
			db := open(t, m.with(t, dsn))
			leases, err := lease.New(db)
			if err != nil {
				t.Fatal(err)
			}
			if err := leases.Setup(t.Context()); err != nil {
				t.Fatal(err)
			}
			store, err := tokens.New(db)
			if err != nil {
				t.Fatal(err)
			}
			for n, name := range alike {
				if err := store.Adopt(t.Context(), sqlfence.Token{Name: name, Value: int64(n) + 10}); err != nil {
					t.Errorf("%q: %v", name, err)
				}
			}
			for n, name := range alike {
				if current, err := store.Current(t.Context(), name); err != nil || current.Value != int64(n)+10 {
					t.Errorf("%q: %v, %v, want %d", name, current, err, n+10)
				}
				fenced, err := sqlfence.Open("mysql", m.with(t, dsn), sqlfence.WithTable("books", sqlfence.Ledger(), sqlfence.Resource(name)))
				if err != nil {
					t.Fatalf("%q: %v", name, err)
				}
				for add, want := range []bool{true, false} {
					ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: name, Value: int64(n + 10 - add)})
					_, err := fenced.ExecContext(ctx, "UPDATE books SET price = 1 WHERE id = 7")
					if (err == nil) != want {
						t.Errorf("%q -%d: %v", name, add, err)
					}
				}
				_ = fenced.Close()
				l, ok, err := leases.TryAcquire(t.Context(), name, lease.Resume(name), lease.TTL(time.Hour))
				if err != nil || !ok || l.Token().Value != int64(n)+11 || l.Key() != name {
					t.Fatalf("%q: %v, %v, %v", name, l, ok, err)
				}
			}
			list, err := leases.List(t.Context())
			if err != nil || len(list) != len(alike) {
				t.Errorf("%d leases, want %d (%v)", len(list), len(alike), err)
			}
		})
	}
}

// On a server that distinguishes the case of names, the guard spells an alias as the statement does.
func TestAliasInCapitals(t *testing.T) {
	eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
		for _, query := range []string{
			"UPDATE books AS Bk SET Bk.price = 1 WHERE Bk.id = 1",
			"UPDATE books `Bk` JOIN pens P ON P.id = Bk.id SET Bk.price = 2",
			"DELETE Bk FROM books Bk JOIN pens P ON P.id = Bk.id WHERE Bk.id = 1",
		} {
			refill(t, plain)
			_, err := guarded.ExecContext(of("books", 4), query)
			harness.WantError(t, err, sqlfence.ErrStale)
			if _, err := guarded.ExecContext(of("books", 6), query); err != nil || count(t, plain, untouched) == 3 {
				t.Errorf("%s: %v", query, err)
			}
		}
	}, sqlfence.RowFence("fence_token"))
}
