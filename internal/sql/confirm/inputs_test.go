package confirm

import "testing"

// Placeholders are counted as the database does, outside of strings and comments.
func TestCounts(t *testing.T) {
	for _, tt := range []struct {
		d         *Dialect
		text      string
		numbers   []int
		all, bare int
		want      bool
	}{
		{SQLite, "SELECT ?, ?, '?' /* ? */", nil, 2, 2, true},
		{SQLite, "SELECT ?, ?, '?' /* ? */", nil, 3, 3, false},
		{SQLite, "SELECT ?, ?, '?' /* ? */", []int{3}, 2, 2, false},
		{SQLite, "SELECT ?, ?2, ?, ?2", []int{2}, 3, 2, true},
		{SQLite, "SELECT ?, ?2, ?, ?2", nil, 3, 2, false},
		{SQLite, "SELECT ?, ?1, ?, ?2, ?3", []int{3}, 3, 2, true},
		{SQLite, "SELECT ?, ?1, ?2", []int{1}, 2, 1, false},    // 1 is the statement's own
		{SQLite, "SELECT ?, ?3, ?, ?3", []int{3}, 4, 2, false}, // it jumps
		{SQLite, "SELECT ?, ?1, ?", nil, 2, 2, true},
		{SQLite, "SELECT ?2, ?3, ?1", nil, 3, 0, true},
		{SQLite, "SELECT ?2, ?3, ?1", nil, 2, 0, false},
		{SQLite, "SELECT ?2, ?3, ?", nil, 4, 0, false},
		{SQLite, "SELECT ?99999999999999999999, ?", nil, 1, 1, false},
		{Postgres, "SELECT $2, $1, '$3', $a$ $4 $a$, a$5", nil, 2, 0, true},
		{Postgres, "SELECT $2, $1", nil, 3, 0, false},
		{Postgres, "SELECT 1", nil, 0, 0, true},
	} {
		c := Begin()
		for _, n := range tt.numbers {
			c.Number(n)
		}
		if !c.Confirms(tt.d, tt.text) {
			t.Fatal(tt.text)
		}
		if got := c.Counts(tt.all, tt.bare); got != tt.want {
			t.Errorf("%s: %d arguments, %d without a number: %v", tt.text, tt.all, tt.bare, got)
		}
		c.Release()
	}
}
