package mysql

import "testing"

// A statement that may commit the open transaction is known by its first word, and an EXPLAIN ANALYZE by the word of the
// statement that it executes: TiDB's executes ALTER TABLE and IMPORT INTO.
func TestEndsTx(t *testing.T) {
	for query, want := range map[string]bool{
		"SELECT 1":                                                        false,
		"EXPLAIN SELECT 1":                                                false,
		"EXPLAIN ALTER TABLE t ADD COLUMN c int":                          false,
		"DESC analyze_log":                                                false,
		"EXPLAIN ANALYZE SELECT 1":                                        false,
		"EXPLAIN ANALYZE ((SELECT 1))":                                    false,
		"explain analyze format='brief' UPDATE t SET n=1":                 false,
		"EXPLAIN ANALYZE ALTER TABLE t ADD COLUMN c int":                  true,
		"DESC /**/ ANALYZE FORMAT = brief ALTER TABLE t ADD COLUMN c int": true,
		"describe analyze import into t from '/tmp/t.csv'":                true,
		"EXPLAIN ANALYZE":                                                 true,
		"EXPLAIN ANALYZE FORMAT":                                          true,
		"EXPLAIN ANALYZE (":                                               true,
		"ALTER TABLE t ADD COLUMN c int":                                  true,
		"ANALYZE TABLE t":                                                 true,
		"SELECT 1; DROP TABLE t":                                          true,
	} {
		word := query
		for i := range query {
			if query[i] == ' ' {
				word = query[:i]
				break
			}
		}
		if got := endsTx(word, query); got != want {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}
