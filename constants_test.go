package sqlfence

import "testing"

func TestReadsOnce(t *testing.T) {
	for query, want := range map[string]bool{
		"UPDATE books SET price = $1 WHERE id = $2":          false,
		`UPDATE "books" SET "price" = $1 /* it is */`:        false,
		"UPDATE books SET state = 'done' WHERE id = $1":      false,
		"UPDATE books SET state = 'done' WHERE id = '$1'":    true,
		"UPDATE books SET at = 'now'":                        true,
		"UPDATE books SET at = ' Today'":                     true,
		"UPDATE books SET state = 'it''s', at = 'yesterday'": true,
		"UPDATE books SET at = '2026-01-02', price = $1":     true,
		`UPDATE "it's" SET at = 'tomorrow'`:                  true,
		"UPDATE books SET at = 'now' -- isn't it":            true,
		"UPDATE books SET at = /* ' */ 'now'":                true,
		`UPDATE books SET at = E'\\x6eow'`:                   true,
		"UPDATE books SET at = $$now$$":                      true,
		"UPDATE books SET price = $1, at = $a$today$a$":      true,
		"UPDATE books SET price = $":                         true,
		"UPDATE books SET at = 'now":                         true,
		"UPDATE books SET at = timestamptz 'no'\n'w'":        true,
		"UPDATE books SET at = 'no' \r\n\t'w' WHERE id = $1": true,
		"UPDATE books SET state = 'it''s' \n WHERE id = $1":  false,
		"UPDATE books SET state = 'a', name = 'b'\n":         false,
	} {
		if got := (postgres{}).readsOnce(query); got != want {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
		if (sqlite{}).readsOnce(query) {
			t.Errorf("%s: SQLite reads it at each execution", query)
		}
	}
}
