package confirm

import "testing"

func TestWithItems(t *testing.T) { testKind(t, WithItems, withItems) }

// Items of WITH stand before the statement, or behind the word WITH.
var withItems = map[string]bool{
	"«WITH l AS (UPDATE fencing_tokens SET a = 1)» UPDATE books SET a = 1":                            true,
	"WITH RECURSIVE« l AS (UPDATE fencing_tokens SET a = 1),» x AS (SELECT 1) UPDATE books SET a = 1": true,
	"EXPLAIN (ANALYZE) «WITH l AS (UPDATE fencing_tokens SET a = 1)» UPDATE books SET a = 1":          true,
	"UPDATE books SET a = 1 «WITH l AS (UPDATE fencing_tokens SET a = 1)»":                            false,
	"SELECT (SELECT 1 «WITH l AS (SELECT 1)»)":                                                        false,
	"«WITH l AS (SELECT 1)» (SELECT 1)":                                                               true,
	"(«WITH l AS (SELECT 1)» UPDATE books SET a = 1)":                                                 true,
	"EXPLAIN VERBOSE «WITH l AS (SELECT 1)» UPDATE books SET a = 1":                                   true,
	"WITH a AS (SELECT 1)« , l AS (SELECT 1)» UPDATE books SET a = 1":                                 false,
	"WITH a AS («WITH l AS (SELECT 1)» SELECT 1) UPDATE books SET a = 1":                              false,
	"UPDATE books SET a = («WITH l AS (SELECT 1)» SELECT 1)":                                          false,
	"DELETE FROM books WHERE a = 1; «WITH l AS (SELECT 1)» SELECT 1":                                  true,
	"SELECT «WITH l AS (SELECT 1)» 1":                                                                 false,
	"UPDATE books SET a = 1 WITH «l AS (SELECT 1),» b":                                                false,
	"(SELECT 1) «WITH l AS (SELECT 1)» SELECT 1":                                                      false,
	"EXPLAIN SELECT 1 «WITH l AS (SELECT 1)»":                                                         false,
	"1 «WITH l AS (SELECT 1)» SELECT 1":                                                               false,
	"'a' «WITH l AS (SELECT 1)» SELECT 1":                                                             false,
	"* «WITH l AS (SELECT 1)» SELECT 1":                                                               false,
	"? «WITH l AS (SELECT 1)» SELECT 1":                                                               false,
	", «WITH l AS (SELECT 1)» SELECT 1":                                                               false,
	"+ «WITH l AS (SELECT 1)» SELECT 1":                                                               false,
	"() «WITH l AS (SELECT 1)» SELECT 1":                                                              false,
}
