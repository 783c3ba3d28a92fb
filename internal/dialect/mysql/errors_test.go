package mysql

import "testing"

// A statement that may commit the open transaction is known by its first word. An EXPLAIN ANALYZE and a SET STATEMENT are
// known by the first word of the statement that they execute: on TiDB an EXPLAIN ANALYZE may execute ALTER TABLE and
// IMPORT INTO.
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
		"SET @a = 1":                                                      false,
		"SET @a = 'DEFAULT ROLE; STATEMENT'":                              false,
		"SET NAMES utf8mb4":                                               false,
		"SET ROLE NONE":                                                   false,
		"set session binlog_format = 'STATEMENT'":                         false,
		"SET STATEMENT max_statement_time = 1 FOR SELECT 1":               false,
		"SET STATEMENT a = (SELECT 1 FOR UPDATE), b = 2 FOR (SELECT 1)":   false,
		"SET /* c */ STATEMENT a = 1 FOR UPDATE t SET n = 1":              false,
		"SET STATEMENT a = 1 FOR DROP TABLE t":                            true,
		"SET STATEMENT a = (SELECT 1 FOR UPDATE) FOR COMMIT":              true,
		"set statement a = 1 for start transaction":                       true,
		"SET STATEMENT a = 1 FOR ROLLBACK TO SAVEPOINT s":                 true,
		"SET STATEMENT a = 1 FOR CALL p()":                                true,
		"SET STATEMENT a = 1 FOR":                                         true,
		"SET STATEMENT":                                                   true,
		"SET DEFAULT ROLE NONE":                                           true,
		"SET/**/DEFAULT ROLE r FOR u":                                     true,
		"SET RESOURCE GROUP g":                                            true,
		"SET PASSWORD = 'x'":                                              true,
		"SET autocommit = 1":                                              true,
		"SET @a = 1; DROP TABLE t":                                        true,
		"SET @a = 1; COMMIT":                                              true,
		"DO f()":                                                          true,
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
