package rewrite

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
)

// A guard's argument is numbered by its first place in the text.
func TestPlacesOfArguments(t *testing.T) {
	many := strings.Repeat("?, ", 16)
	for _, tt := range []struct {
		rules, sql string
		want       string // the arguments: the statement's own are numbers, "7" is the token's value
	}{
		{"row", "UPDATE books SET price = ? WHERE id = ?", "1 7 2"},
		{"row", "UPDATE books SET price = 1 WHERE id = ?", "7 1"},
		{"row", "UPDATE books SET price = ?", "1 7"},
		{"row", "WITH a AS (SELECT ?) UPDATE books SET price = ? WHERE id = ? RETURNING ?", "1 2 7 3 4"},
		{"row", "DELETE FROM books WHERE id = ? AND price = ? RETURNING ?", "1 2 7 3"},
		{"ledger", "DELETE FROM books WHERE id = ?", "7 books 1"},
		{"both", "UPDATE books SET price = ? WHERE id = ?", "1 7 books 2"},
		{"row", "INSERT INTO books (id, price) VALUES (?, ?), (?, ?)", "1 2 7 3 4"},
		{"row", "INSERT INTO books (id) VALUES (?) ON CONFLICT (id) DO UPDATE SET price = ?", "1 7 2"},
		{"row", "INSERT INTO books (id) SELECT ? FROM a WHERE b = ?", "1 7 2"},
		{"row", "UPDATE books SET price = ?2 WHERE id = ?1", "1 2 7"},
		{"row", "DELETE FROM books WHERE id IN (" + many + "?) AND price = ?",
			"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 7 again1 again2 again3 again4 again5 again6 again7 again8 again9 again10 again11 again12 again13 again14 again15 again16 again17 again18"},
		{"row", "DELETE FROM books WHERE id IN (?, ?) AND f(?) AND price = ?", "1 2 3 4 7"},
		{"lock", "UPDATE books SET price = ? WHERE id = ?", "1 2 editor"},
	} {
		p := (&sample{sql: tt.sql}).plan(t, databases.SQLite, tt.rules)
		v := Values{Tables: make([]TableValues, len(p.Tables)), Editor: "editor"}
		for i := range v.Tables {
			if rulesOf(p, i).Fenced() {
				v.Tables[i].Tokens = []Token{{Name: "books", Value: 7}}
			}
		}
		r := renderedOf(t, p, v)
		all := make([]string, p.Inputs+len(r.Args))
		for _, a := range r.Args {
			all[a.Number-1] = fmt.Sprint(a.Value(&v))
			if a.Again > 0 {
				all[a.Number-1] = fmt.Sprint("again", a.Again)
			}
		}
		for i, own := 0, 0; i < len(all); i++ {
			if all[i] == "" {
				own++
				all[i] = fmt.Sprint(own)
			}
		}
		if got := strings.Join(all, " "); got != tt.want {
			t.Errorf("%s: %s\ngot  %s\nwant %s\n%s", tt.rules, tt.sql, got, tt.want, r.SQL)
		}
	}
}

// A value isn't passed twice if there is no room for another argument, or if the values are in the text.
func TestRepeatedArgumentsWithoutRoom(t *testing.T) {
	const manyRepeated, manyNumbered = 16, 1024
	most := says(databases.SQLite).Guard.MaxInputs
	for n, again := range map[int]bool{manyRepeated: false, manyRepeated + 1: true, manyNumbered: true, most/2 - 1: true, most / 2: false, most: false} {
		p := (&sample{sql: "DELETE FROM books WHERE id IN (?" + strings.Repeat(", ?", n-1) + ")"}).plan(t, databases.SQLite, "row")
		v := Values{Tables: []TableValues{{Tokens: []Token{{Name: "books", Value: 7}}}}}
		r := renderedOf(t, p, v)
		copies := 0
		for _, a := range r.Args {
			if a.Again > 0 {
				copies++
			}
		}
		if want := map[bool]int{true: n}[again]; copies != want || n+len(r.Args) > most {
			t.Errorf("%d placeholders: %d are passed once more, want %d", n, copies, want)
		}
		v.Literal = true
		r = renderedOf(t, p, v)
		if inText := numbers(t, databases.SQLite, r.SQL); len(r.Args) > 0 || n <= manyNumbered && slices.Max(inText) != n || n > manyNumbered && strings.Contains(r.SQL, "?1") {
			t.Errorf("%d placeholders, in the text: %d arguments more, the highest is %d", n, len(r.Args), slices.Max(inText))
		}
	}
}
