package sealed_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// BenchmarkSealed measures guarded writes of a sealed table and of an unsealed table with the same rules, in turns. It
// reports the ratio of the medians. No commit waits for the disk.
func BenchmarkSealed(b *testing.B) {
	for _, base := range bases[:3] {
		for name, rules := range map[string][]sqlfence.Rule{"row": nil, "ledger": {sqlfence.Ledger()}} {
			b.Run(base.Name+"/"+name, func(b *testing.B) {
				open, sealed := newUnsealed(b, base, rules...), newLab(b, base, rules...)
				for _, l := range []*lab{open, sealed} {
					l.db.SetMaxOpenConns(1)
					fill(b, l)
				}
				for _, w := range workloads {
					b.Run(w.name, func(b *testing.B) { compare(b, open, sealed, w) })
				}
			})
		}
	}
}

// A workload is a number of writes, whose setup isn't measured.
type workload struct {
	name string
	n    int
	run  func(ctx context.Context, stmts []*sql.Stmt, db *sql.DB, i int) error
	text []string // prepared
	undo string
}

var workloads = []workload{
	{"update", 400, func(ctx context.Context, s []*sql.Stmt, _ *sql.DB, i int) error {
		_, err := s[0].ExecContext(ctx, i, 5000+i)
		return err
	}, []string{"UPDATE books SET price = {1} WHERE id = {2}"}, ""},
	{"insert", 400, func(ctx context.Context, s []*sql.Stmt, _ *sql.DB, i int) error {
		_, err := s[0].ExecContext(ctx, 9000+i)
		return err
	}, []string{"INSERT INTO books (id) VALUES ({1})"}, "DELETE FROM books WHERE id >= 9000"},
	{"delete", 400, func(ctx context.Context, s []*sql.Stmt, _ *sql.DB, i int) error {
		_, err := s[0].ExecContext(ctx, 5000+i)
		return err
	}, []string{"DELETE FROM books WHERE id = {1}"}, "INSERT INTO books (id) VALUES "},
	{"update of 1,000 rows", 3, func(ctx context.Context, _ []*sql.Stmt, db *sql.DB, i int) error {
		_, err := db.ExecContext(ctx, "UPDATE books SET price = price + 1 WHERE id >= 5000 AND id < 6000")
		return err
	}, nil, ""},
}

func fill(b *testing.B, l *lab) {
	b.Helper()
	_, _ = l.db.ExecContext(context.Background(), "SET synchronous_commit = off")
	_, _ = l.plain.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
	for i := range 10 {
		refill(b, l, 5000+i*100, 100)
	}
}

func refill(b *testing.B, l *lab, from, n int) {
	b.Helper()
	query := "INSERT INTO books (id) VALUES "
	for i := range n {
		if i > 0 {
			query += ", "
		}
		query += fmt.Sprintf("(%d)", from+i)
	}
	if _, err := l.db.ExecContext(sqlfence.WithFence(context.Background(), token(7)), query); err != nil {
		b.Fatal(err)
	}
}

func compare(b *testing.B, open, sealed *lab, w workload) {
	ctx := sqlfence.WithFence(context.Background(), token(7))
	var took [2][]float64
	for range max(b.N, 11) {
		for i, l := range []*lab{open, sealed} {
			took[i] = append(took[i], once(b, ctx, l, w))
		}
	}
	slices.Sort(took[0])
	slices.Sort(took[1])
	o, s := took[0][len(took[0])/2], took[1][len(took[1])/2]
	b.ReportMetric(s/o, "ratio")
	b.ReportMetric(o/float64(w.n)/1000, "µs/unsealed")
	b.ReportMetric(0, "ns/op")
}

func once(b *testing.B, ctx context.Context, l *lab, w workload) float64 {
	var stmts []*sql.Stmt
	for _, text := range w.text {
		s, err := l.db.PrepareContext(ctx, placeholders(l, text))
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		stmts = append(stmts, s)
	}
	began := time.Now()
	for i := range w.n {
		if err := w.run(ctx, stmts, l.db, i); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(began)
	switch w.name {
	case "insert":
		if _, err := l.db.ExecContext(ctx, w.undo); err != nil {
			b.Fatal(err)
		}
	case "delete":
		refill(b, l, 5000, w.n)
	}
	return float64(took)
}
