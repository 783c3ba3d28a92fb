package confirm

import "testing"

const (
	check = "«CASE WHEN fence <= 7 THEN true ELSE raise() END»"
	where = "CASE WHEN (id = 1) THEN " + check + " ELSE false END"
)

func TestCondition(t *testing.T) { testKind(t, Condition, conditions) }

func TestAndCondition(t *testing.T) { testKind(t, AndCondition, andConditions) }

// A condition stands first in the WHERE of its own write, or behind WHEN MATCHED AND;
// the user's own stands before it as CASE WHEN (...) THEN.
var conditions = map[string]bool{
	"DELETE FROM books WHERE " + where:                                                                                                  true,
	"DELETE FROM books WHERE " + where + " AND (id = 1) RETURNING id":                                                                   true,
	"DELETE FROM books WHERE " + check:                                                                                                  true,
	"DELETE FROM books WHERE true RETURNING " + check:                                                                                   false,
	"DELETE FROM books WHERE true OR " + check:                                                                                          false,
	"DELETE FROM books WHERE id IN (SELECT id FROM books WHERE " + where + ")":                                                          false,
	"DELETE FROM pens WHERE " + where:                                                                                                   false,
	"DELETE FROM books USING a JOIN b ON " + check:                                                                                      false,
	"DELETE FROM books WHERE fre«sh»":                                                                                                   false,
	"DELETE FROM books WHERE CASE WHEN a THEN b WHEN (c) THEN " + check:                                                                 false,
	"UPDATE books SET a = 1 WHERE " + where:                                                                                             true,
	"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) WHERE " + check + " DO UPDATE SET id = 1":                                       false,
	"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1 WHERE " + check:                                            true,
	"MERGE INTO books USING s ON true WHEN MATCHED AND " + check + " THEN DELETE":                                                       true,
	"MERGE INTO books USING s ON " + check + " WHEN MATCHED THEN DELETE":                                                                false,
	"UPDATE books SET a = 1 WHERE " + check:                                                                                             true,
	"UPDATE books SET a = 1 WHERE " + where + " RETURNING id":                                                                           true,
	"MERGE INTO books USING s ON true WHEN NOT MATCHED BY SOURCE AND " + where + " THEN DELETE":                                         true,
	"UPDATE books SET a = " + check + " WHERE true":                                                                                     false,
	"UPDATE pens SET a = 1 WHERE " + check:                                                                                              false,
	"UPDATE books SET a = 1 WHERE (" + check + ")":                                                                                      false,
	"UPDATE books SET a = 1 WHERE CASE WHEN a THEN " + check + " END":                                                                   false,
	"UPDATE books SET a = 1 WHERE true AND " + check:                                                                                    false,
	"UPDATE books SET a = 1 WHERE true RETURNING " + check:                                                                              false,
	"UPDATE books SET a = 1 WHERE «CASE WHEN (fence <= 7» THEN true END)":                                                               false,
	"DELETE FROM books WHERE CASE WHEN id THEN " + check:                                                                                false,
	"DELETE FROM books WHERE (CASE WHEN (id) THEN " + check + " END)":                                                                   false,
	"DELETE FROM books WHERE a AND CASE WHEN (id) THEN " + check:                                                                        false,
	"DELETE FROM books WHERE CASE (a) THEN " + check:                                                                                    false,
	"MERGE INTO books USING s ON true WHEN MATCHED THEN UPDATE SET a = 1 WHERE " + check:                                                false,
	"MERGE INTO books USING s ON true WHEN NOT MATCHED BY TARGET AND " + check + " THEN DELETE":                                         true,
	"MERGE INTO books USING s ON true WHEN MATCHED OR " + check + " THEN DELETE":                                                        false,
	"MERGE INTO books USING s ON true WHEN MATCHED AND a AND " + check + " THEN DELETE":                                                 false,
	"MERGE INTO pens USING s ON true WHEN MATCHED AND " + check + " THEN DELETE":                                                        false,
	"SELECT 1 FROM books WHERE " + check:                                                                                                false,
	"DELETE FROM books USING (SELECT 1 WHERE " + check + ")":                                                                            false,
	"MERGE INTO books USING s ON CASE WHEN MATCHED AND " + check + " THEN true END WHEN MATCHED THEN DELETE":                            false,
	"UPDATE books SET a = 1 FROM c WHEN MATCHED AND " + check:                                                                           false,
	"UPDATE books SET a = CASE WHEN b THEN 1 WHERE " + check:                                                                            false,
	"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET a = 1 ON CONFLICT (b) WHERE " + check + " DO UPDATE SET a = 2":    false,
	"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET a = 1 ON CONFLICT (b) WHERE c DO UPDATE SET a = 2 WHERE " + check: true,
	"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET a = conflict(b) WHERE " + check:                                   true,
	"DELETE FROM books LIMIT 1 WHERE " + check:                                                                                          true, // no database takes it
}

// An AND condition stands behind WHERE, or an AND that no OR contains.
var andConditions = map[string]bool{
	"UPDATE books SET a = 1 WHERE (b) AND «ledger(1)»":                                true,
	"UPDATE books SET a = 1 WHERE b OR c AND «ledger(1)»":                             false,
	"UPDATE books SET a = 1 RETURNING b AND «ledger(1)»":                              false,
	"INSERT INTO books SELECT * FROM (VALUES (1)) WHERE «ledger(1)»":                  true,
	"INSERT INTO books SELECT * FROM (SELECT 1 WHERE «ledger(1)»)":                    false,
	"UPDATE books SET a = 1 WHERE «ledger(1)»":                                        true,
	"DELETE FROM books WHERE (b OR c) AND «ledger(1)»":                                true,
	"DELETE FROM books WHERE CASE WHEN b OR c THEN d END AND «ledger(1)»":             true,
	"DELETE FROM books WHERE CASE WHEN b THEN d AND «ledger(1)»":                      false,
	"DELETE FROM books WHERE b OR «ledger(1)»":                                        false,
	"DELETE FROM books WHERE NOT «ledger(1)»":                                         false,
	"DELETE FROM books WHERE b.or AND «ledger(1)»":                                    true,
	"SELECT 1 FROM books WHERE «ledger(1)»":                                           false,
	"MERGE INTO books USING s ON true WHEN MATCHED AND «ledger(1)» THEN DELETE":       true,
	"MERGE INTO books USING s ON true WHEN MATCHED AND b AND «ledger(1)» THEN DELETE": false,
	"MERGE INTO books USING s ON true AND «ledger(1)» WHEN MATCHED THEN DELETE":       false,
	"MERGE INTO books USING s ON true WHEN MATCHED THEN DELETE AND «ledger(1)»":       false,
	"INSERT INTO books /*VALUES*/ SELECT/*(*/1/*)*/ WHERE «ledger(1)»":                true,
	"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) WHERE «ledger(1)» DO NOTHING": false,
	"DELETE FROM books WHERE b END AND «ledger(1)»":                                   false,
	"DELETE FROM books WHERE b WHEN AND «ledger(1)»":                                  false,
	"UPDATE SET a = 1 WHERE «ledger(1)»":                                              false,
	"DELETE FROM books WHERE a IN (1) AND «ledger(1»)":                                false,
}
