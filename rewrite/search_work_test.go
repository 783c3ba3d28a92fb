package rewrite

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// manyNames returns n names, which share most of their bytes in several ways.
func manyNames(n int) (names []string) {
	for i := 0; len(names) < n; i++ {
		names = append(names, fmt.Sprintf("tenant_%05d_books", i), fmt.Sprintf("tb%d", i), fmt.Sprintf("events_%04d_%02d", 1990+i/12, i%12+1),
			fmt.Sprintf("%c%c%c_orders_archive", 'a'+i/676%26, 'a'+i/26%26, 'a'+i%26), fmt.Sprintf("a_table_with_a_long_name_%d_and_more_%d", i/100, i%100))
	}
	return names[:n]
}

// TestSearchAllocates checks that the search allocates nothing, for any number of tables and any text.
func TestSearchAllocates(t *testing.T) {
	for _, n := range numbersOfTables {
		r, err := New(databases.Postgres, manyTables(n))
		if err != nil {
			t.Fatal(err)
		}
		for name, sql := range passedReads {
			if got := testing.AllocsPerRun(50, func() { r.Plan(sql) }); got > 0 && !fakedb.Race {
				t.Errorf("%d tables, %s: %v allocations", n, name, got)
			}
		}
	}
}

// TestManyTables: each of many tables is found, by its name and its schema.
func TestManyTables(t *testing.T) {
	oneGoroutine(t)
	names := manyNames(10_000)
	var tables []Table
	for i, name := range names {
		tables = append(tables, Table{Name: name, Ledger: true}, Table{Name: "orders", Schema: fmt.Sprint("tenant", i), Ledger: true})
	}
	for _, d := range []databases.Dialect{databases.Postgres, databases.SQLite} {
		r, err := New(d, tables)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(names); i += 97 {
			for sql, want := range map[string]int{
				"UPDATE " + strings.ToUpper(names[i]) + " SET a = 1":         2 * i,
				fmt.Sprintf("UPDATE tenant%d.orders SET a = 1", i):           2*i + 1,
				fmt.Sprintf(`DELETE FROM "other".%s WHERE id = 1`, names[i]): 2 * i,
			} {
				if p := r.Plan(sql); p.Verdict != guard.Guard || !slices.Equal(p.Tables, []int{want}) {
					t.Fatalf("%v, %s: %v of tables %d, want %d", d, sql, p.Verdict, p.Tables, want)
				}
			}
		}
		for sql, want := range map[string]guard.Verdict{
			"UPDATE tenant_x.orders SET a = 1": guard.Pass, "UPDATE tenant_00001_book SET a = 1": guard.Pass, "DROP TABLE orders": guard.Refuse,
		} {
			if p := r.Plan(sql); p.Verdict != want {
				t.Errorf("%v, %s: %v, want %v", d, sql, p.Verdict, want)
			}
		}
	}
	for _, twice := range []Table{tables[0], tables[1], {Name: "orders", Ledger: true}, {Name: names[9], Schema: "x", Ledger: true}} {
		if _, err := New(databases.SQLite, append(slices.Clone(tables), twice)); err == nil {
			t.Errorf("%q.%q is registered twice", twice.Schema, twice.Name)
		}
	}
}
