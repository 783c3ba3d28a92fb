package sqlite_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
)

// BenchmarkSealed measures guarded writes of a sealed table beside those of one with RowFence
// alone, in turns, as the ratio of the medians. They are in transactions that are rolled back: no
// commit waits for the disk.
func BenchmarkSealed(b *testing.B) {
	for _, base := range bases() {
		for name, rules := range map[string][]sqlfence.Rule{"row": nil, "ledger": {sqlfence.Ledger()}} {
			b.Run(base.Name+"/"+name, func(b *testing.B) {
				labs := [2]*lab{benchLab(b, base, rules), benchLab(b, base, rules)}
				labs[1].seal(b)
				for _, w := range workloads {
					b.Run(w.name, func(b *testing.B) { compare(b, labs, w) })
				}
			})
		}
	}
}

func benchLab(b *testing.B, base harness.Base, rules []sqlfence.Rule) *lab {
	l := newUnsealed(b, base, "CREATE TABLE books (id integer PRIMARY KEY, price integer, title text UNIQUE, fence_token integer NOT NULL DEFAULT 0);\n"+
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO books SELECT i, i, 'title ' || i, 0 FROM n", rules...)
	l.issue(b, "books", 7)
	l.db.SetMaxOpenConns(1)
	return l
}

// A workload is a statement, sent often.
type workload struct {
	name  string
	times int
	query string // of two numbers: which write it is, and one that is never the same
}

var workloads = []workload{
	{"update", 200, "UPDATE books SET price = ?2 WHERE id = ?1"},
	{"update of a unique column", 200, "UPDATE books SET title = 'other ' || ?2 WHERE id = ?1"},
	{"insert", 200, "INSERT INTO books (price, title) VALUES (?1, 'new ' || ?2)"},
	{"upsert", 200, "INSERT INTO books (id, price) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET price = excluded.price"},
	{"delete", 200, "DELETE FROM books WHERE id = ?1 AND price <> ?2"},
	{"update of 1,000 rows", 1, "UPDATE books SET price = ?2 WHERE id > ?1 AND id <= 1000 + ?1"},
	{"delete of 1,000 rows", 1, "DELETE FROM books WHERE id > ?1 AND id <= 1000 + ?1 AND price <> ?2"},
}

func compare(b *testing.B, labs [2]*lab, w workload) {
	var took [2][]float64
	for round := range max(b.N, 11) {
		for i, l := range labs {
			took[i] = append(took[i], l.once(b, w, round))
		}
	}
	slices.Sort(took[0])
	slices.Sort(took[1])
	plain, sealed := took[0][len(took[0])/2], took[1][len(took[1])/2]
	b.ReportMetric(sealed/plain, "ratio")
	b.ReportMetric(plain/float64(w.times)/1000, "µs/plain")
	b.ReportMetric(0, "ns/op")
}

// once returns the time for the workload.
func (l *lab) once(b *testing.B, w workload, round int) float64 {
	ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: 7})
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer tx.Rollback()
	began := time.Now()
	for n := range w.times {
		if _, err := tx.ExecContext(ctx, w.query, n, 10_000+round*w.times+n); err != nil {
			b.Fatal(err)
		}
	}
	return float64(time.Since(began))
}
