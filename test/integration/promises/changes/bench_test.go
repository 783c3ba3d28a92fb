package changes_test

import (
	"fmt"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// BenchmarkCounter measures a counter's cost for an UPDATE of one row, and the cost of Count.
func BenchmarkCounter(b *testing.B) {
	for _, base := range harness.Bases {
		db := base.Raw(b, base.DSN(b))
		counter := setup(b, db)
		exec(b, db, "CREATE TABLE plain (id int PRIMARY KEY, price int NOT NULL)")
		exec(b, db, "INSERT INTO plain (id, price) VALUES (1, 10)")
		for _, table := range []string{"plain", "books"} {
			b.Run(fmt.Sprintf("%s/UPDATE %s", base.Name, table), func(b *testing.B) {
				for b.Loop() {
					exec(b, db, "UPDATE "+table+" SET price = price + 1 WHERE id = 1")
				}
			})
		}
		b.Run(base.Name+"/Count", func(b *testing.B) {
			for b.Loop() {
				count(b, counter, "books")
			}
		})
	}
}
