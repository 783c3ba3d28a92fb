package confirm

import "testing"

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
		"UPDATE books SET (serial) = 1 + ROW(" + value + ")":                                 false,
		"UPDATE books SET a = 1, " + value:                                                   false,
		value:                                                                                false,
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
