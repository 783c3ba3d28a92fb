package rules

import (
	"fmt"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// manyNames returns n names, which share most of their bytes in several ways.
func manyNames(n int) (names []string) {
	for i := 0; len(names) < n; i++ {
		names = append(names, fmt.Sprintf("tenant_%05d_books", i), fmt.Sprintf("tb%d", i), fmt.Sprintf("events_%04d_%02d", 1990+i/12, i%12+1),
			fmt.Sprintf("%c%c%c_orders_archive", 'a'+i/676%26, 'a'+i/26%26, 'a'+i%26), fmt.Sprintf("a_table_with_a_long_name_%d_and_more_%d", i/100, i%100))
	}
	return names[:n]
}

// longRead4k is a SELECT of 4 KB.
var longRead4k = func() string {
	var b strings.Builder
	b.WriteString("SELECT id")
	for i := 0; b.Len() < 4000; i++ {
		fmt.Fprintf(&b, ",\n       coalesce(t%d.customer_name, 'n/a') AS \"Customer %d\", t%d.order_total * 1.%02d", i%7, i, i%7, i%100)
	}
	return b.String() + "\nFROM customers t0 JOIN invoice_lines_archive t1 ON t0.id = t1.id WHERE t0.id > $1"
}()

// TestSearchWork: a look-up visits about one bucket, whatever the number of names is, and few words of a text need a
// look-up.
func TestSearchWork(t *testing.T) {
	for _, n := range []int{1, 100, 10_000} {
		var tables []guard.Table
		for _, name := range manyNames(n) {
			tables = append(tables, guard.Table{Name: name, Ledger: true})
		}
		r, err := New(databases.Postgres, tables)
		if err != nil {
			t.Fatal(err)
		}
		words := &r.search.words
		asked, buckets, all := 0, 0, 0
		for _, w := range strings.FieldsFunc(longRead4k, func(c rune) bool { return !isWordByte(byte(c)) }) {
			all++
			if words.mayHave(firstBytes(eight(w+"        ", 0), len(w)), len(w)) {
				asked++
			}
			buckets += visited(words, w)
		}
		if asked > all/5 || buckets > 2*all {
			t.Errorf("%d names: of %d words %d are looked up, in %d buckets", n, all, asked, buckets)
		}
		sum, most := 0, 0
		for _, w := range words.words {
			v := visited(words, w.text)
			sum, most = sum+v, max(most, v)
		}
		if sum > 2*len(words.words) || most > 12 {
			t.Errorf("%d names: %d buckets for one, %d for all", n, most, sum)
		}
	}
}

// visited returns the number of buckets that a look-up visits.
func visited(s *wordSet, w string) (n int) {
	for at := hash(w, 0, len(w)) >> s.shift; ; at = (at + 1) % uint64(len(s.buckets)) {
		n++
		if b := s.buckets[at]; b.word == 0 || strings.EqualFold(s.words[b.word-1].text, w) {
			return n
		}
	}
}
