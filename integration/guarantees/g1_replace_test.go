package guarantees_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
)

// In SQLite a constraint may say that the row in the way is to be replaced. The
// statement doesn't show it, but it deletes a row, and that row may have a newer
// mark. (OR ABORT in the statement overrides what the constraint says.)
func TestG1RowFenceWhereAConstraintReplacesRows(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("only SQLite has ON CONFLICT in constraints")
		}
		for _, w := range []harness.Write{
			{Name: "insert", Query: "INSERT INTO books (id, isbn) VALUES ($1, $2)", Args: []any{7, "i1"}},
			{Name: "insert of several", Query: "INSERT INTO books (id, isbn) VALUES ($1, $2), (8, 'i8')", Args: []any{7, "i1"}},
			{Name: "update", Query: "UPDATE books SET isbn = $1 WHERE id = $2", Args: []any{"i1", 2}},
		} {
			t.Run(w.Name, func(t *testing.T) {
				sh := harness.Setting{Base: b}.Shop(t, sqlfence.RowFence("fence_token"))
				sh.Exec(t, "DROP TABLE books")
				sh.Exec(t, "CREATE TABLE books (id integer PRIMARY KEY, isbn text UNIQUE ON CONFLICT REPLACE, price integer DEFAULT 10, fence_token bigint)")
				sh.Reset(t, 5)
				sh.Exec(t, "UPDATE books SET fence_token = 9 WHERE id = 1")
				unchanged := sh.Unchanged(t)
				_, err := harness.Forms[0].Run(harness.Holding(t, 5), sh.DB, w.As(b.Dialect))
				if err == nil || errors.Is(err, sqlfence.ErrUnguardable) {
					t.Errorf("err = %v, want the database's", err)
				}
				unchanged()
			})
		}
	})
}

// REPLACE deletes the rows in the way, and their marks with them: none may be higher.
func TestG1ReplaceRefusesAnOlderToken(t *testing.T) {
	eachReplace(t, func(t *testing.T, sh *harness.Shop, form harness.Form, w harness.Write) {
		for id := range 3 {
			sh.Reset(t, 5)
			sh.Exec(t, "UPDATE books SET fence_token = 10 WHERE id = ?", id+1)
			unchanged := sh.Unchanged(t)
			_, err := form.Run(harness.Holding(t, 9), sh.DB, w)
			harness.WantStale(t, err, 9, 10)
			unchanged()
		}
	})
}

// What is replaced has the token as its mark.
func TestG1ReplaceByTheNewestToken(t *testing.T) {
	eachReplace(t, func(t *testing.T, sh *harness.Shop, form harness.Form, w harness.Write) {
		sh.Reset(t, 9)
		if _, err := form.Run(harness.Holding(t, 10), sh.DB, w); err != nil {
			t.Fatal(err)
		}
		if got := sh.State(t, true); got != "2:10@9 3:10@9 7:30@10" {
			t.Errorf("left %s", got)
		}
		sh.Exec(t, "UPDATE books SET fence_token = NULL")
		if _, err := form.Run(harness.Holding(t, 1), sh.DB, w); err != nil {
			t.Error(err)
		}
	})
}

// eachReplace runs test with statements that replace the book i1 by the book 7, in a table
// whose marks have a type, or none.
func eachReplace(t *testing.T, test func(t *testing.T, sh *harness.Shop, form harness.Form, w harness.Write)) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("only SQLite has REPLACE")
		}
		for _, mark := range []string{"bigint", "bigint, indexed", "text", "text, indexed", "blob", "numeric", ""} {
			columnType, indexed := strings.CutSuffix(mark, ", indexed")
			sh := harness.Setting{Base: b}.Shop(t, sqlfence.RowFence("fence_token"))
			sh.Exec(t, "DROP TABLE books")
			sh.Exec(t, "CREATE TABLE books (id integer PRIMARY KEY, isbn text UNIQUE, price integer DEFAULT 10, fence_token "+columnType+")")
			if indexed {
				sh.Exec(t, "CREATE INDEX marks ON books (fence_token)")
			}
			for _, w := range []harness.Write{
				{Query: "REPLACE INTO books (id, isbn, price) VALUES (?, ?, 30)", Args: []any{7, "i1"}},
				{Query: "INSERT OR REPLACE INTO books AS b (id, isbn, price) VALUES (?, ?, 30)", Args: []any{7, "i1"}},
				{Query: "INSERT OR REPLACE INTO main.books (isbn, id, price) SELECT ?, 7, 30", Args: []any{"i1"}},
				{Query: "INSERT OR REPLACE INTO books (isbn, id, price) WITH books AS (SELECT 7 AS id, 0 AS fence_token) SELECT ?, id, 30 FROM books", Args: []any{"i1"}},
			} {
				for _, form := range harness.Forms {
					test(t, sh, form, w)
				}
			}
		}
	})
}

// In Observe mode a mark never falls, also where REPLACE deletes its row.
func TestG1ReplaceIsObserved(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("only SQLite has REPLACE")
		}
		w := harness.Watch(t, b, harness.Books(sqlfence.RowFence("fence_token")), harness.ObserveMode)
		replace := harness.Write{Query: "REPLACE INTO books (id, isbn, price) VALUES (?, ?, 30)", Args: []any{7, "i1"}}
		w.Clear(t, 5)
		if _, err := harness.Forms[0].Run(harness.Holding(t, 4), w.DB, replace); err != nil {
			t.Fatal(err)
		}
		w.WantEvents(t, replace.Query, sqlfence.ErrStale)
		if got := w.State(t, true); got != "2:10@5 3:10@5 7:30@5" {
			t.Errorf("left %s", got)
		}
	})
}
