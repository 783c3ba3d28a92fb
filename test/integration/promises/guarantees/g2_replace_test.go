package guarantees_test

import (
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// REPLACE deletes the old row. Under Ledger alone this loses no stored token, because rows have none. So REPLACE is
// guarded like other writes: only the newest token replaces rows.
func TestG2Replace(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		replaces := map[sqlfence.Dialect]map[string]string{
			sqlfence.SQLite: {
				"REPLACE INTO books (id, isbn, price) VALUES (7, ?, 30)":                                   "2:10@0 3:10@0 7:30@0",
				"REPLACE INTO books SELECT 7, ?, 30, 0, 0":                                                 "2:10@0 3:10@0 7:30@0",
				"INSERT OR REPLACE INTO main.books AS b (id, isbn, price) VALUES (2, ?, 30)":               "2:30@0 3:10@0",
				"INSERT OR REPLACE INTO books (id, isbn, price) SELECT id, ?, 30 FROM books WHERE id <> 2": "2:10@0 3:30@0",
				"WITH w AS (SELECT 7 AS id) REPLACE INTO books (isbn, id) SELECT ?, id FROM w":             "2:10@0 3:10@0 7:10@0",
				"UPDATE OR REPLACE books SET isbn = ?, price = 30 WHERE id = 3":                            "2:10@0 3:30@0",
			},
			sqlfence.MySQL: {
				"REPLACE INTO books (id, isbn, price) VALUES (7, ?, 30)":               "2:10@0 3:10@0 7:30@0",
				"REPLACE books VALUES (7, ?, 30, 0, 0)":                                "2:10@0 3:10@0 7:30@0",
				"REPLACE LOW_PRIORITY INTO books SET isbn = ?, price = 30, id = 2":     "2:30@0 3:10@0",
				"REPLACE INTO books (id, isbn, price) VALUES (9, 'i9', 9), (3, ?, 30)": "2:10@0 3:30@0 9:9@0",
				"REPLACE INTO books (id, isbn) VALUES (9, 'i2'), (7, ?)":               "3:10@0 7:10@0 9:10@0",
			},
		}[b.Dialect]
		if replaces == nil {
			t.Skip("it has no REPLACE")
		}
		for _, rules := range [][]sqlfence.Rule{{sqlfence.Ledger()}, {sqlfence.Ledger(), sqlfence.UnfencedInserts()}} {
			sh := harness.Setting{Base: b}.Shop(t, rules...)
			for query, left := range replaces {
				for _, form := range b.Forms() {
					onlyNewestReplaces(t, sh, form, harness.Write{Query: query, Args: []any{"i1"}}, left)
				}
			}
		}
	})
}

func onlyNewestReplaces(t *testing.T, sh *harness.Shop, form harness.Form, w harness.Write, left string) {
	t.Helper()
	sh.Reset(t, 0)
	sh.Raise(t, "books", 5)
	unchanged := sh.Unchanged(t)
	_, err := form.Run(harness.Holding(t, 4), sh.DB, w)
	harness.WantStale(t, err, 4, 5)
	_, err = form.Run(t.Context(), sh.DB, w)
	harness.WantError(t, err, sqlfence.ErrNoFence)
	unchanged()
	if _, err := form.Run(harness.Holding(t, 5), sh.DB, w); err != nil {
		t.Errorf("%s by %s: %v", w.Query, form.Name, err)
	}
	if got := sh.State(t, true); got != left {
		t.Errorf("%s by %s left %s, want %s", w.Query, form.Name, got, left)
	}
}

// Under other rules a REPLACE would delete the row's stored token or lock, so it is refused before it is sent.
func TestG4ReplaceBesideOtherRules(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		replaces := map[sqlfence.Dialect][]string{
			sqlfence.SQLite: {
				"REPLACE INTO books VALUES (7, 'i1', 30, 0, 0)",
				"INSERT OR REPLACE INTO books (id, isbn) SELECT 7, 'i1'",
				"REPLACE INTO books DEFAULT VALUES",
				"UPDATE OR REPLACE books SET price = 30 WHERE id = 1",
			},
			sqlfence.MySQL: {
				"REPLACE INTO books (id, isbn) VALUES (7, 'i1')",
				"REPLACE DELAYED books VALUES (7, 'i1', 30, 0, 0)",
				"REPLACE INTO books (id, isbn) SELECT 7, 'i1'",
				"REPLACE INTO books SET id = 7, isbn = 'i1'",
				"REPLACE INTO books () VALUES ()",
			},
		}[b.Dialect]
		if replaces == nil {
			t.Skip("it has no REPLACE")
		}
		for name, rules := range map[string][]sqlfence.Rule{
			"row fence":        {sqlfence.RowFence("fence_token")},
			"both":             {sqlfence.RowFence("fence_token"), sqlfence.Ledger()},
			"key":              {sqlfence.Key("id"), sqlfence.Ledger()},
			"key, new rows":    {sqlfence.Key("id"), sqlfence.Ledger(), sqlfence.UnfencedInserts()},
			"serial":           {sqlfence.Serial("serial"), sqlfence.Ledger()},
			"serial, no token": {sqlfence.Serial("serial")},
			"lock":             {sqlfence.EditLock("by", "since", "expiry"), sqlfence.Ledger()},
		} {
			sh := harness.Setting{Base: b}.Shop(t, rules...)
			sh.Reset(t, 1)
			unchanged := sh.Unchanged(t)
			db, count := b.Counted(t, sh.Source, harness.Books(rules...))
			for _, query := range replaces {
				ctx := sqlfence.WithFence(harness.Holding(t, 1), sqlfence.Token{Name: "books/7", Value: 1}, sqlfence.Token{Name: "books/1", Value: 1})
				if _, err := db.ExecContext(ctx, query); err == nil {
					t.Errorf("%s: %s passed", name, query)
				} else {
					harness.WantError(t, err, sqlfence.ErrUnguardable)
				}
			}
			if got := count.Texts(); len(got) != 0 {
				t.Errorf("%s: reached the database: %q", name, got)
			}
			unchanged()
		}
	})
}
