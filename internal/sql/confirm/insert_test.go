package confirm

import "testing"

func TestColumn(t *testing.T) { testKind(t, Column, columns) }

func TestRowValue(t *testing.T) { testKind(t, RowValue, rowValues) }

func TestReturning(t *testing.T) { testKind(t, Returning, returnings) }

func TestOrAbort(t *testing.T) { testKind(t, OrAbort, orAborts) }

func TestTail(t *testing.T) { testKind(t, Tail, offsets) }

// An OFFSET stands behind the query of an INSERT.
var offsets = map[string]bool{
	"INSERT INTO books (id) SELECT 1« OFFSET (2)»":                                                   true,
	"INSERT INTO books (id) SELECT a FROM pens WHERE b ORDER BY 1 LIMIT 3« OFFSET (2)» RETURNING id": true,
	"INSERT INTO books (id) (SELECT 1)« OFFSET (2)»":                                                 true,
	"INSERT INTO books (id) SELECT f(1« OFFSET (2)»)":                                                false,
	"INSERT INTO books (id) SELECT 1 FROM pens WHERE CASE WHEN a THEN b« OFFSET (2)» END":            false,
	"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET a = 1« OFFSET (2)»":            false,
	"INSERT INTO books (id) SELECT 1 WHERE a AND« OFFSET (2)»":                                       false,
	"UPDATE books SET a = 1« OFFSET (2)»":                                                            false,
	"SELECT 1« OFFSET (2)»":                                                                          false,
	"INSERT INTO books (id) SELECT 1« LIMITED (2)»":                                                  false,
}

// A column stands in the list of those that an INSERT names.
var columns = map[string]bool{
	"INSERT INTO books (id«, fence») VALUES (1)":    true,
	"INSERT INTO books (id«, fence», a) VALUES (1)": true, // the serial may follow; a count that differs is an error
	"INSERT INTO books (id) VALUES (1«, fence»)":    false,
	"INSERT INTO books (id) SELECT f(1«, fence»)":   false,
	"INSERT INTO books (id)« (fence)» VALUES (1)":   false,
	"INSERT INTO books «(fence)» VALUES (1)":        false,
	"INSERT INTO books (id«, fence»b) VALUES (1)":   false,
	"INSERT INTO books (id«, fence» b) VALUES (1)":  false,
	"«(fence)»": false,
	"MERGE INTO books USING s ON true WHEN NOT MATCHED THEN INSERT (id«, fence») VALUES (1)": true,
	"UPDATE books (id«, fence») SET a = 1":                                                   false,
	"REPLACE INTO books (id«, fence») VALUES (1)":                                            true,
	"REPLACE INTO books (id) VALUES (1«, fence»)":                                            false,
}

// A value stands at the end of a row, or of the columns that a SELECT gives.
var rowValues = map[string]bool{
	"INSERT INTO books (id) VALUES (1«, 7»), (2)":                 true,
	"INSERT INTO books (id) VALUES (f(1«, 7»))":                   false,
	"INSERT INTO books (id) SELECT 1«, 7» FROM pens":              true,
	"INSERT INTO books (id) SELECT 1 FROM pens«, 7»":              false,
	"INSERT INTO books (id) SELECT 1 FROM pens RETURNING id«, 7»": false,
	"SELECT 1«, 7»":                                                                  false,
	"INSERT INTO books (id) VALUES (1«, 7»)":                                         true,
	"INSERT INTO books (id) VALUES (1«, 7», 2)":                                      true, // a count that differs is an error
	"INSERT INTO books (id) VALUES (1«, 7» + 2)":                                     false,
	"INSERT INTO books (id) SELECT 1«, 7» + 2":                                       false,
	"INSERT INTO books (id) SELECT 1«, 7» ORDER BY 1":                                true,
	"INSERT INTO books (id) SELECT 1«, 7» UNION SELECT 2":                            true,
	"INSERT INTO books (id) (SELECT 1«, 7»)":                                         true,
	"INSERT INTO books (id) (VALUES (1«, 7»))":                                       true,
	"INSERT INTO books (id) SELECT 1 FROM pens WHERE a«, 7»":                         false,
	"INSERT INTO books (id) SELECT f(1«, 7»)":                                        false,
	"INSERT INTO books (id) SELECT DISTINCT ON (a) 1«, 7» FROM pens":                 true,
	"INSERT INTO books (id) SELECT rank(1) WITHIN GROUP (ORDER BY a)«, 7» FROM pens": true,
	"INSERT INTO books (id) SELECT 1 GROUP (a«, 7»)":                                 false,
	"INSERT INTO books (id) SELECT 1 FROM a JOIN b ON (c)«, 7»":                      false,
	"MERGE INTO books USING s ON true WHEN NOT MATCHED THEN INSERT (id) VALUES (1) WHEN MATCHED AND (SELECT 1«, 7») THEN DELETE": false,
	"REPLACE INTO books (id) VALUES (1«, 7»)":                                            true,
	"REPLACE INTO books (id) VALUES (1«, 7» + 2)":                                        false,
	"REPLACE INTO books (id) SELECT 1«, 7»":                                              false,
	"DELETE FROM books USING (VALUES (1«, 7»)) AS v":                                     false,
	"VALUES (1«, 7»)":                                                                    false,
	"UPDATE books SET a = 1 FROM (SELECT 1«, 7») AS v":                                   false,
	"MERGE INTO books USING s ON true WHEN NOT MATCHED THEN INSERT (id) VALUES (1«, 7»)": true,
	"MERGE INTO books USING s ON true WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN DO NOTHING RETURNING (1«, 7»)": false,
}

// What RETURNING adds stands in an INSERT.
var returnings = map[string]bool{
	"INSERT INTO books (id) VALUES (1) «RETURNING id»":   true,
	"INSERT INTO books (id) VALUES (1) «RETURNING i»d":   false,
	"UPDATE books SET id = 1 «RETURNING id»":             false,
	"INSERT INTO books (id) VALUES (1) «RETURNING (id)»": true,
	"INSERT INTO books (id) VALUES (1) «RETURNING (id»)": false,
	"INSERT INTO books (id) VALUES (1«) RETURNING id»":   false,
	"DELETE FROM books «RETURNING id»":                   false,
}

// OR ABORT stands behind the verb.
var orAborts = map[string]bool{
	"UPDATE« OR ABORT» books SET a = 1":         true,
	"INSERT« OR ABORT» INTO books VALUES (1)":   true,
	"INSERT INTO« OR ABORT» books VALUES (1)":   false,
	"UPDATE books« OR ABORT» SET a = 1":         false,
	"DELETE« OR ABORT» FROM books":              false,
	"INSERT« OR (ABORT)» INTO books VALUES (1)": true, // nothing but its place is asked of a piece
	"UPDATE books SET a = update« OR ABORT»":    true, // likewise
}
