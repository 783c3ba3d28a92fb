package read

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
)

const short = "UPDATE books SET price=$1 WHERE id=$2"

var shortTexts = []string{
	short,
	"INSERT INTO books (id, title) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET title = excluded.title RETURNING id",
	"DELETE FROM books AS b USING authors a WHERE a.id = b.author AND (b.x OR b.y)",
	"WITH x AS (UPDATE books SET a = 1 RETURNING id) SELECT * FROM x",
	"MERGE INTO books b USING n ON b.id = n.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (1)",
}

var mysqlTexts = []string{
	"UPDATE books SET price=? WHERE id=?",
	"INSERT INTO books (id, title) VALUES (?, ?) AS n ON DUPLICATE KEY UPDATE title = n.title",
	"DELETE FROM books AS b WHERE b.id = ? LIMIT 1",
	"UPDATE `books` b JOIN pens p ON b.id = p.id SET b.price = p.price, p.price = 1",
}

// TestAllocations: a text of usual length is parsed into the memory of the text before.
func TestAllocations(t *testing.T) {
	for g, texts := range map[*lex.Grammar][]string{Postgres: shortTexts, MySQL: mysqlTexts} {
		for _, sql := range texts {
			n := testing.AllocsPerRun(200, func() {
				x, err := Open(g, sql, lex.EscapesUnknown)
				if err != nil {
					t.Fatal(err)
				}
				for x.Next() {
				}
				x.Close()
			})
			if n > 0 && !fakedb.Race {
				t.Errorf("%s: %v allocations", sql, n)
			}
		}
	}
}

// TestLongTexts: a long text is parsed completely, and its memory isn't kept.
func TestLongTexts(t *testing.T) {
	for _, sql := range []string{
		"INSERT INTO books (id) VALUES (1)" + strings.Repeat(", (1)", maxReused),
		"UPDATE books SET a = 1" + strings.Repeat(", a = 1", maxReused),
	} {
		x, err := Open(Postgres, sql, lex.EscapesUnknown)
		if err != nil || !x.Next() {
			t.Fatal(err)
		}
		w := &x.Writes[0]
		rows := len(w.Set.Items)
		if w.Verb == Insert {
			rows = len(w.Insertion.Arms[0].Rows)
		}
		if rows != maxReused+1 || w.Failure.Reason != advise.Readable {
			t.Errorf("%.20s: %d, %v", sql, rows, w.Failure)
		}
		x.Close()
		if x.Src == "" {
			t.Errorf("%.20s: its room is kept", sql)
		}
	}
}

// TestClosedKeepsNothing: a closed Text, which is kept for the next query, holds no string of the last one.
func TestClosedKeepsNothing(t *testing.T) {
	x := &Text{}
	y, err := Open(SQLite, "WITH a AS (SELECT 1) UPDATE shop.books AS b SET c = 1; SELECT 1", lex.EscapesUnknown)
	if err != nil {
		t.Fatal(err)
	}
	*x = *y
	for x.Next() {
	}
	x.Close()
	for _, w := range x.Writes[:cap(x.Writes)] {
		if w.Target != (Target{}) {
			t.Errorf("%+v", w.Target)
		}
	}
	for _, p := range x.Parts[:cap(x.Parts)] {
		if p.Name != "" {
			t.Errorf("%+v", p)
		}
	}
	if x.Src != "" {
		t.Error("the text is kept")
	}
}

func BenchmarkRead(b *testing.B) {
	for _, sql := range append(shortTexts, "INSERT INTO books (id, title) VALUES (1, 'a')"+strings.Repeat(", (1000, 'some title')", 999)) {
		b.Run(sql[:min(len(sql), 60)], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x, err := Open(Postgres, sql, lex.EscapesUnknown)
				if err != nil {
					b.Fatal(err)
				}
				for x.Next() {
				}
				x.Close()
			}
		})
	}
}
