package confirm

import (
	"strings"
	"testing"
)

// confirmed takes the check of a text in which «» are around each piece, of these
// kinds in their order. The pieces are written for the table "books".
func confirmed(d *Dialect, marked string, kinds ...Kind) bool {
	c := Begin()
	defer c.Release()
	text := ""
	for _, kind := range kinds {
		before, rest, _ := strings.Cut(marked, "«")
		inside, after, _ := strings.Cut(rest, "»")
		lo := len(text) + len(before)
		c.Add(Piece{Kind: kind, Lo: lo, Hi: lo + len(inside), Target: `"books"`})
		text, marked = text+before+inside, after
	}
	return c.Confirms(d, text+marked, requote)
}

// around returns the kinds of the pieces in a text: a closing one has "serial".
func around(marked string) (kinds []Kind) {
	for _, p := range strings.Split(marked, "«")[1:] {
		inside, _, _ := strings.Cut(p, "»")
		if strings.Contains(inside, "serial") {
			kinds = append(kinds, BehindValue)
		} else {
			kinds = append(kinds, BeforeValue)
		}
	}
	return kinds
}

// requote knows the names in these tests.
func requote(name string) string {
	switch name {
	case `"books"`, `u&"books"`, "[books]", "`books`", "'books'":
		return `"books"`
	}
	return name
}

// The second look refuses a piece of the guard that stands elsewhere than where it
// guards, whatever the reader took it for. In the texts «» are around the piece.
func TestSecondLook(t *testing.T) {
	const (
		mark  = "«, fence = 7»"
		check = "«CASE WHEN fence <= 7 THEN true ELSE raise() END»"
		where = "CASE WHEN (id = 1) THEN " + check + " ELSE false END"
	)
	for _, tt := range []struct {
		kind Kind
		text string
		want bool
	}{
		{Assignment, "UPDATE books SET price = 1" + mark, true},
		{Assignment, "UPDATE books SET price = 1" + mark + " WHERE id = 1 RETURNING id", true},
		{Assignment, "UPDATE books SET price = 1 WHERE id = 1 RETURNING id" + mark, false},
		{Assignment, "UPDATE books SET price = @ case::int WHERE id = @ id RETURNING id" + mark, false},
		{Assignment, "UPDATE books SET price = 1 WHERE id = 1" + mark, false},
		{Assignment, "UPDATE books SET price = 1 FROM pens" + mark + " WHERE true", false},
		{Assignment, "UPDATE books SET price = (SELECT 1" + mark + ")", false},
		{Assignment, "UPDATE books SET price = CASE WHEN a THEN 1" + mark + " ELSE 2 END", false},
		{Assignment, "UPDATE books SET price = CASE WHEN a THEN 1 ELSE 2 END" + mark, true},
		{Assignment, "UPDATE books SET price = 1" + mark + " + 1", false},
		{Assignment, "UPDATE books SET price = 1" + mark + ", id = 2", false},
		{Assignment, "UPDATE books SET price =" + mark, false},
		{Assignment, "UPDATE books SET price = 1 -- " + mark, false},
		{Assignment, "UPDATE books SET price = 1 /* " + mark + " */", false},
		{Assignment, "UPDATE books SET price = '" + mark + "'", false},
		{Assignment, "UPDATE books SET price = $$" + mark + "$$", false},
		{Assignment, "UPDATE books SET price = E'\\'" + mark + "'", false},
		{Assignment, "UPDATE books SET price = 1" + mark[:len(mark)-len("»")] + " -- »\n", true},
		{Assignment, "UPDATE books SET price = 1«, fence = (7», 8)", false},
		{Assignment, "UPDATE books SET price = 1«, fence = (7»", false},
		{Assignment, "UPDATE books SET price = 1«, fence = 7)(»", false},
		{Assignment, "UPDATE books SET price = 1«, fence = 7»7", false},
		{Assignment, "UPDATE books SET price = CASE WHEN a THEN 1" + mark, false},
		{Assignment, "UPDATE pens SET price = 1" + mark, false},
		{Assignment, "UPDATE pens AS books SET price = 1" + mark, true},
		{Assignment, "UPDATE books AS b SET price = 1" + mark, false},
		{Assignment, "UPDATE ONLY (books) SET price = 1" + mark, true},
		{Assignment, "UPDATE pens SET price = 1; UPDATE books SET price = 1" + mark, true},
		{Assignment, "UPDATE books SET price = 1; UPDATE pens SET price = 1" + mark, false},
		{Assignment, "WITH a AS (UPDATE books SET price = 1) UPDATE pens SET price = 1" + mark, false},
		{Assignment, "WITH a AS (UPDATE books SET price = 1" + mark + ") UPDATE pens SET price = 1", true},
		{Assignment, "UPDATE books SET a = b IS DISTINCT FROM c" + mark, true},
		{Assignment, "UPDATE books SET a = b.where" + mark, true},
		{Assignment, "UPDATE books SET set = values" + mark, true},
		{Assignment, "INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1" + mark + " WHERE true", true},
		{Assignment, "INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1 RETURNING id" + mark, false},
		{Assignment, "INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO NOTHING RETURNING id" + mark, false},
		{Assignment, "MERGE INTO books USING s ON true WHEN MATCHED THEN UPDATE SET id = 1" + mark + " WHEN NOT MATCHED THEN DO NOTHING", true},
		{Assignment, "MERGE INTO books USING s ON true WHEN MATCHED THEN UPDATE SET id = 1 WHEN NOT MATCHED THEN DO NOTHING" + mark, false},
		{Assignment, "MERGE INTO books USING s ON true WHEN MATCHED THEN DELETE" + mark, false},
		{Assignment, "SELECT 1" + mark, false},

		{Condition, "DELETE FROM books WHERE " + where, true},
		{Condition, "DELETE FROM books WHERE " + where + " AND (id = 1) RETURNING id", true},
		{Condition, "DELETE FROM books WHERE " + check, true},
		{Condition, "DELETE FROM books WHERE true RETURNING " + check, false},
		{Condition, "DELETE FROM books WHERE true OR " + check, false},
		{Condition, "DELETE FROM books WHERE id IN (SELECT id FROM books WHERE " + where + ")", false},
		{Condition, "DELETE FROM pens WHERE " + where, false},
		{Condition, "DELETE FROM books USING a JOIN b ON " + check, false},
		{Condition, "DELETE FROM books WHERE fre«sh»", false},
		{Condition, "DELETE FROM books WHERE CASE WHEN a THEN b WHEN (c) THEN " + check, false},
		{Condition, "UPDATE books SET a = 1 WHERE " + where, true},
		{Condition, "INSERT INTO books (id) VALUES (1) ON CONFLICT (id) WHERE " + check + " DO UPDATE SET id = 1", false},
		{Condition, "INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1 WHERE " + check, true},
		{Condition, "MERGE INTO books USING s ON true WHEN MATCHED AND " + check + " THEN DELETE", true},
		{Condition, "MERGE INTO books USING s ON " + check + " WHEN MATCHED THEN DELETE", false},

		{Condition, "UPDATE books SET a = 1 WHERE " + check, true},
		{Condition, "UPDATE books SET a = 1 WHERE " + where + " RETURNING id", true},
		{Condition, "MERGE INTO books USING s ON true WHEN NOT MATCHED BY SOURCE AND " + where + " THEN DELETE", true},
		{Condition, "UPDATE books SET a = " + check + " WHERE true", false},
		{Condition, "UPDATE pens SET a = 1 WHERE " + check, false},
		{Condition, "UPDATE books SET a = 1 WHERE (" + check + ")", false},
		{Condition, "UPDATE books SET a = 1 WHERE CASE WHEN a THEN " + check + " END", false},
		{Condition, "UPDATE books SET a = 1 WHERE true AND " + check, false},
		{Condition, "UPDATE books SET a = 1 WHERE true RETURNING " + check, false},
		{Condition, "UPDATE books SET a = 1 WHERE «CASE WHEN (fence <= 7» THEN true END)", false},

		{Column, "INSERT INTO books (id«, fence») VALUES (1)", true},
		{Column, "INSERT INTO books (id«, fence», a) VALUES (1)", true}, // the serial may follow; a count that differs is an error
		{Column, "INSERT INTO books (id) VALUES (1«, fence»)", false},
		{Column, "INSERT INTO books (id) SELECT f(1«, fence»)", false},
		{RowValue, "INSERT INTO books (id) VALUES (1«, 7»), (2)", true},
		{RowValue, "INSERT INTO books (id) VALUES (f(1«, 7»))", false},
		{RowValue, "INSERT INTO books (id) SELECT 1«, 7» FROM pens", true},
		{RowValue, "INSERT INTO books (id) SELECT 1 FROM pens«, 7»", false},
		{RowValue, "INSERT INTO books (id) SELECT 1 FROM pens RETURNING id«, 7»", false},
		{RowValue, "SELECT 1«, 7»", false},
		{WithItems, "«WITH l AS (UPDATE fencing_tokens SET a = 1)» UPDATE books SET a = 1", true},
		{WithItems, "WITH RECURSIVE« l AS (UPDATE fencing_tokens SET a = 1),» x AS (SELECT 1) UPDATE books SET a = 1", true},
		{WithItems, "EXPLAIN (ANALYZE) «WITH l AS (UPDATE fencing_tokens SET a = 1)» UPDATE books SET a = 1", true},
		{WithItems, "UPDATE books SET a = 1 «WITH l AS (UPDATE fencing_tokens SET a = 1)»", false},
		{WithItems, "SELECT (SELECT 1 «WITH l AS (SELECT 1)»)", false},
		{AndCondition, "UPDATE books SET a = 1 WHERE (b) AND «ledger(1)»", true},
		{AndCondition, "UPDATE books SET a = 1 WHERE b OR c AND «ledger(1)»", false},
		{AndCondition, "UPDATE books SET a = 1 RETURNING b AND «ledger(1)»", false},
		{AndCondition, "INSERT INTO books SELECT * FROM (VALUES (1)) WHERE «ledger(1)»", true},
		{Returning, "INSERT INTO books (id) VALUES (1) «RETURNING id»", true},
		{Returning, "INSERT INTO books (id) VALUES (1) «RETURNING i»d", false},
		{Returning, "UPDATE books SET id = 1 «RETURNING id»", false},
		{AndCondition, "INSERT INTO books SELECT * FROM (SELECT 1 WHERE «ledger(1)»)", false},
	} {
		if got := confirmed(Postgres, tt.text, tt.kind); got != tt.want {
			t.Errorf("confirmed = %v, want %v: %s", got, tt.want, tt.text)
		}
	}
}

// A serial that the statement assigns has a piece before it and one behind it, in «»
// here. They are refused anywhere but around the whole of one assigned value.
func TestSecondLookAtAnAssignedSerial(t *testing.T) {
	const value = "«greatest((»$1«), serial)»"
	for text, want := range map[string]bool{
		"UPDATE books SET serial = " + value:                                                 true,
		"UPDATE books SET serial = " + value + ", a = 1 WHERE id = 1":                        true,
		"UPDATE books SET serial = " + value + " FROM pens":                                  true,
		"UPDATE books SET serial = «greatest((»(SELECT max(a) FROM pens)«), serial)»":        true,
		"UPDATE books SET serial = «greatest((»CASE WHEN a THEN 1 END«), serial)»":           true,
		"UPDATE books SET (a, serial) = (1, " + value + ")":                                  true,
		"UPDATE books SET (serial, a) = ROW(" + value + ", 1) WHERE id = 1":                  true,
		"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET serial = " + value: true,
		"MERGE INTO books USING s ON true WHEN MATCHED THEN UPDATE SET serial = " + value:    true,
		"UPDATE books SET a = 1 WHERE serial = " + value:                                     false,
		"UPDATE books SET a = 1 RETURNING serial = " + value:                                 false,
		"INSERT INTO books (serial) VALUES (" + value + ")":                                  false,
		"SELECT serial = " + value:                                                           false,
		"UPDATE pens SET serial = " + value:                                                  false,
		"WITH a AS (UPDATE books SET a = 1) UPDATE pens SET serial = " + value:               false,
		"UPDATE books SET a = 1; UPDATE pens SET serial = " + value:                          false,
		"UPDATE books SET a = 1 FROM (SELECT serial = " + value + ") AS s":                   false,
		"UPDATE books SET serial = f(" + value + ")":                                         false,
		"UPDATE books SET serial = (a = " + value + ")":                                      false,
		"UPDATE books SET serial = 1 + " + value:                                             false,
		"UPDATE books SET serial = " + value + " + 1":                                        false,
		"UPDATE books SET serial = " + value + "::int":                                       false,
		"UPDATE books SET serial = " + value + " OR true":                                    false,
		"UPDATE books SET serial = CASE WHEN a = " + value + " THEN 1 END":                   false,
		"UPDATE books SET serial = «greatest((»CASE WHEN a THEN 1«), serial)» END":           false,
		"UPDATE books SET serial = «greatest((»1) + (2«), serial)»":                          false,
		"UPDATE books SET serial = «greatest((»(1«), serial)»)":                              false,
		"UPDATE books SET serial = «greatest((»1)«), serial)»":                               false,
		"UPDATE books SET serial = «greatest((»1«), serial»)":                                false,
		"UPDATE books SET serial = «greatest »1«, serial»":                                   false,
		"UPDATE books SET serial = «greatest((»«greatest((»1«), serial)»«), serial)»":        false,
		"UPDATE books SET serial = «greatest((»1), serial)":                                  false,
		"UPDATE books SET serial = " + value + ", a = greatest((1«), serial)»":               false,
		"UPDATE books SET serial = greatest((1«), serial)»":                                  false,
		"UPDATE books SET serial = «greatest((»1 -- «), serial)»\n), serial)":                false,
	} {
		if got := confirmed(Postgres, text, around(text)...); got != want {
			t.Errorf("confirmed = %v, want %v: %s", got, want, text)
		}
	}
}
