package confirm

import "testing"

// What MySQL alone has: the places of the pieces in its statements.
func TestMySQL(t *testing.T) {
	for kind, texts := range map[Kind]map[string]bool{
		LeadingAssignment: {
			"UPDATE books SET «fence = 7, »a = 1":                                     true,
			"UPDATE books SET« fence = 7,» a = 1":                                     true,
			"UPDATE books b JOIN pens p ON 1 SET «books.fence = 7,» p.a = 1":          true,
			"UPDATE books SET «fence = 7 »a = 1":                                      false,
			"UPDATE books SET a = 1, «fence = 7, »b = 2":                              false,
			"UPDATE books SET a = «fence = 7, »b = 2":                                 false,
			"UPDATE books SET a = (SELECT «fence = 7, »b)":                            false,
			"UPDATE pens SET «fence = 7, »a = 1":                                      false,
			"INSERT INTO books SET «fence = 7, »a = 1":                                true,
			"INSERT INTO books VALUES (1) ON DUPLICATE KEY UPDATE «fence = 7, »a = 1": true,
			"INSERT INTO books VALUES (1) ON DUPLICATE KEY «UPDATE fence = 7, »a = 1": false,
			"DELETE FROM books WHERE «fence = 7, »a = 1":                              false,
			"SELECT «fence = 7, »a":                                                   false,
		},
		Condition: {
			"DELETE FROM books WHERE «fence < 7»":                                                                         true,
			"DELETE FROM books WHERE (a) AND CASE WHEN (a) THEN «fence < 7» ELSE false END":                               true,
			"DELETE FROM books WHERE (a) AND «fence < 7»":                                                                 true,
			"DELETE FROM books WHERE a AND CASE WHEN (a) THEN «fence < 7» ELSE false END":                                 false,
			"DELETE FROM books WHERE (b) OR (a) AND «fence < 7»":                                                          false,
			"DELETE FROM books WHERE (b) + (a) AND CASE WHEN (a) THEN «fence < 7» END":                                    false,
			"DELETE b FROM books b JOIN pens ON a WHERE «fence < 7»":                                                      true,
			"DELETE FROM books USING books JOIN pens ON a WHERE «fence < 7»":                                              true,
			"DELETE inks FROM inks JOIN pens ON a WHERE «fence < 7»":                                                      false,
			"DELETE books FROM books JOIN pens ON «fence < 7» WHERE a":                                                    false,
			"DELETE b FROM books b JOIN pens ON a WHERE CASE WHEN EXISTS (SELECT a) THEN «fence < 7» ELSE false END":      true,
			"DELETE b FROM books b JOIN pens ON a WHERE c OR CASE WHEN EXISTS (SELECT a) THEN «fence < 7» ELSE false END": false,
			"DELETE b FROM books b JOIN pens ON a WHERE CASE WHEN NOT EXISTS (a) THEN «fence < 7» ELSE false END":         false,
			"DELETE b FROM books b JOIN pens ON CASE WHEN EXISTS (a) THEN «fence < 7» END":                                false,
			"DELETE FROM books WHERE a ORDER BY «fence < 7»":                                                              false,
			"DELETE IGNORE QUICK FROM books AS pens WHERE «fence < 7»":                                                    false,
			"DELETE QUICK FROM books WHERE «fence < 7»":                                                                   true,
		},
		AndCondition: {
			"UPDATE books SET a = 1 WHERE b AND «fence < 7»":                         true,
			"UPDATE books SET a = 1 WHERE (b || c) AND «fence < 7»":                  true,
			"INSERT INTO books (a) SELECT b WHERE «fence < 7» AND (c)":               true,
			"INSERT INTO books (a) (SELECT b FROM c WHERE «fence < 7» AND (d))":      true,
			"REPLACE INTO books (SELECT b FROM c WHERE «fence < 7»)":                 true,
			"INSERT INTO books (a) SELECT b FROM c UNION SELECT d WHERE «fence < 7»": true,
			"INSERT INTO books (a) SELECT MAX(b) FROM c WHERE d HAVING «fence < 7»":  true,
			"INSERT INTO books (a) SELECT b HAVING «fence < 7» AND (c) ORDER BY 1":   true,
			"INSERT INTO books (a) (SELECT MAX(b) FROM c HAVING «fence < 7»)":        true,
			"INSERT INTO books (a) SELECT MAX(b) FROM c HAVING d AND «fence < 7»":    false,
			"INSERT INTO books (a) SELECT MAX(b) FROM c HAVING NOT «fence < 7»":      false,
			"INSERT INTO books (a) SELECT b FROM c LIMIT «fence < 7»":                false,
			"INSERT INTO books (a) SELECT (SELECT MAX(b) HAVING «fence < 7») FROM c": false,
			"UPDATE books SET a = 1 WHERE b HAVING «fence < 7»":                      false,
			"SELECT MAX(b) FROM books HAVING «fence < 7»":                            false,
			"INSERT INTO books (a) (SELECT (SELECT b WHERE «fence < 7») FROM c)":     false,
			"INSERT INTO books (a) VALUES ((SELECT b WHERE «fence < 7»))":            false,
			"INSERT INTO books PARTITION (SELECT b WHERE «fence < 7») (a) SELECT c":  false,
			"INSERT (SELECT b WHERE «fence < 7») INTO books (a) VALUES (1)":          false,
			"UPDATE books SET a = 1 WHERE b || c AND «fence < 7»":                    false,
			"UPDATE books SET a = 1 WHERE b XOR c AND «fence < 7»":                   false,
			"UPDATE books SET a = 1 WHERE b RLIKE c AND «fence < 7»":                 true,
		},
		Column: {
			"INSERT INTO books (id«, fence») VALUES (1)":                                        true,
			"INSERT IGNORE books (id«, fence») VALUE (1)":                                       true,
			"INSERT INTO books PARTITION (p) (id«, fence») VALUES (1)":                          true,
			"INSERT INTO books PARTITION (p«, fence») (id) VALUES (1)":                          false,
			"INSERT INTO books (id) VALUES (1«, fence»)":                                        false,
			"INSERT INTO books (id) VALUES (1) AS n (a«, fence») ON DUPLICATE KEY UPDATE a = 1": true,
		},
		RowValue: {
			"INSERT INTO books (id) VALUES (1«, 7»)":                                        true,
			"INSERT INTO books (id) VALUE (1«, 7»)":                                         true,
			"INSERT INTO books (id) VALUES ROW(1«, 7»), ROW(2)":                             true,
			"INSERT INTO books (id) VALUES (1) AS n (a«, 7») ON DUPLICATE KEY UPDATE a = 1": false,
			"INSERT INTO books (id) SELECT 1«, 7» FROM pens":                                true,
			"INSERT INTO books (id) VALUES (1) ON DUPLICATE KEY UPDATE a = f(b«, 7»)":       false,
		},
	} {
		for text, want := range texts {
			if got := confirmed(MySQL, text, kind); got != want {
				t.Errorf("kind %d: confirmed = %v, want %v: %s", kind, got, want, text)
			}
		}
	}
}

// Several assignments may stand at the beginning, and one at the end.
func TestLeadingAssignments(t *testing.T) {
	for text, want := range map[string]bool{
		"UPDATE books SET «fence = 7, »«serial = 2, »a = 1«, fence = 8»":        true,
		"UPDATE books SET «fence = 7, »a = 1, «serial = 2, »b = 1«, fence = 8»": false,
	} {
		if got := confirmed(MySQL, text, LeadingAssignment, LeadingAssignment, Assignment); got != want {
			t.Errorf("confirmed = %v, want %v: %s", got, want, text)
		}
	}
}
