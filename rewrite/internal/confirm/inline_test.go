package confirm

import "testing"

// Where pgx and the server would find placeholders at different places, values
// can't be written into the text.
func TestInlines(t *testing.T) {
	for text, want := range map[string]bool{
		`UPDATE books SET price = $1 WHERE id = $2`:                       true,
		`UPDATE books SET a = 'it''s $1', b = "c$1" WHERE id = $1`:        true,
		`UPDATE books SET a = E'\'$1' WHERE id = -$1`:                     true,
		`UPDATE books SET a = U&'\0041$1' WHERE id = $1 -- don't $3`:      true,
		`UPDATE books SET a = $$plain$$ /* /* $2 */ it's */ WHERE b = $1`: true,
		`UPDATE books SET a = a$1 WHERE id = $1`:                          false,
		`UPDATE books SET a = a$b$, c = $1, d = e$b$`:                     false,
		`UPDATE books SET a = date'\', b = '$1' WHERE id = $1`:            false,
		`UPDATE books SET a = date '\', b = '$1' WHERE id = $1`:           true,
		`UPDATE books SET a = $$it's$$, b = $1`:                           false, // before pgx 5.9
		`UPDATE books SET a = $x$ $1 $x$ WHERE id = $1`:                   false,
		"UPDATE books SET a = E'\\''\n'\\'$1' WHERE id = $1":              false,
		"UPDATE books SET a = 'x'\n$1":                                    false,
	} {
		if got := Postgres.Inlines(text); got != want {
			t.Errorf("inlines = %v, want %v: %s", got, want, text)
		}
	}
}
