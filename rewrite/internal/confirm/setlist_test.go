package confirm

import "testing"

const setList = "« SET fence = CASE WHEN a THEN 7 END»"

// A SET list stands behind the target of its own UPDATE, and nothing is assigned behind it.
func TestSetList(t *testing.T) {
	for text, want := range map[string]bool{
		"/*DELETE*/ UPDATE /*FROM*/ books" + setList:                                         true,
		"UPDATE books" + setList + " WHERE id = 1 RETURNING id":                              true,
		"UPDATE main.books AS b INDEXED BY i" + setList + " WHERE id = 1":                    false,
		"UPDATE main.pens AS books INDEXED BY i" + setList + " WHERE id = 1":                 true,
		"WITH a AS (SELECT 1) UPDATE books" + setList + " WHERE id = 1":                      true,
		"DELETE FROM books" + setList:                                                        false,
		"DELETE FROM books" + setList + " WHERE id = 1":                                      false,
		"UPDATE pens" + setList:                                                              false,
		"UPDATE books SET price = 1" + setList:                                               false,
		"UPDATE books WHERE id = 1" + setList:                                                false,
		"UPDATE books" + setList + ", price = 1":                                             false,
		"UPDATE books" + setList + " SET price = 1":                                          false,
		"UPDATE books" + setList + " + 1":                                                    false,
		"UPDATE books« fence = 7»":                                                           false,
		"UPDATE books« SET fence = (7»)":                                                     false,
		"SELECT 1 FROM books" + setList:                                                      false,
		"INSERT INTO books (id) VALUES (1)" + setList:                                        false,
		"INSERT INTO books (id) VALUES (1) ON CONFLICT DO UPDATE" + setList:                  false,
		"/*DELETE UPDATE /*FROM*/ books" + setList:                                           false,
		"DELETE UPDATE FROM books" + setList:                                                 false,
		"UPDATE books SET a = 1 WHERE id IN (SELECT 1); UPDATE books" + setList:              true,
		"UPDATE books SET a = 1 WHERE id IN (SELECT 1); DELETE FROM books" + setList + ";\n": false,
	} {
		if got := confirmed(SQLite, text, SetList); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}
