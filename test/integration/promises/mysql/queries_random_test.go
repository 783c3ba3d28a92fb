package mysql_test

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// plans are session settings that change the servers' query plans. A setting that a server doesn't have is omitted.
var plans = []string{
	"SET optimizer_switch = 'condition_pushdown_from_having=off'", "SET optimizer_switch = 'condition_pushdown_for_derived=off'", "SET optimizer_switch = 'derived_merge=off'",
	"SET optimizer_switch = 'materialization=off'", "SET optimizer_switch = 'semijoin=off'", "SET optimizer_switch = 'subquery_cache=off'", "SET optimizer_switch = 'in_to_exists=off'",
	"SET optimizer_switch = 'derived_condition_pushdown=off'", "SET optimizer_switch = 'subquery_to_derived=on'", "SET optimizer_switch = 'hypergraph_optimizer=on'", "SET optimizer_switch = 'mrr=on,mrr_cost_based=off'",
	"SET join_cache_level = 8", "SET optimizer_prune_level = 0", "SET optimizer_search_depth = 1", "SET optimizer_use_condition_selectivity = 1", "SET big_tables = 1", "SET sql_select_limit = 1", "SET SESSION sql_mode = CONCAT(@@sql_mode, ',ONLY_FULL_GROUP_BY')", "SET tmp_table_size = 1024",
	"SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET innodb_snapshot_isolation = ON",
}

// queried creates the tables and views that the queries read in addition to the pens.
var queried = []string{"CREATE TABLE nothing (id int, grp int, price int)", "CREATE TABLE single (id int PRIMARY KEY, grp int, price int)", "INSERT INTO single VALUES (1, 1, 1)",
	"CREATE TABLE parts (id int PRIMARY KEY, grp int, price int) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (3), PARTITION p1 VALUES LESS THAN MAXVALUE)", "INSERT INTO parts SELECT * FROM pens",
	"CREATE VIEW seen AS SELECT * FROM pens", "CREATE VIEW counted AS SELECT COUNT(*) AS id, 2 AS grp, 3 AS price FROM pens WHERE 1 = 0", "REPLACE INTO fencing_tokens VALUES ('books', 5)"}

func (r random) call() string {
	return r.pick("COUNT(*)", "COUNT(DISTINCT p.grp)", "MAX(p.id)", "GROUP_CONCAT(p.id)", "SUM(p.price)", "BIT_OR(p.id)", "JSON_ARRAYAGG(p.id)", "STD(p.id)", "COUNT(p.id) + 7", "JSON_OBJECTAGG(p.id, p.grp)", "ANY_VALUE(p.id)",
		"ROW_NUMBER() OVER ()", "COUNT(*) OVER (ORDER BY p.id)", "SUM(p.price) OVER (PARTITION BY p.grp)", "RANK() OVER (ORDER BY p.price)", "SUM(SUM(p.id)) OVER ()", "FIRST_VALUE(p.id) OVER (ORDER BY p.id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)")
}

func (r random) value() string {
	switch r.IntN(8) {
	case 0, 1:
		return r.call()
	case 2:
		return r.pick("IF(", "COALESCE(", "NULLIF(", "IFNULL(") + r.pick("p.id", "1", "NULL") + ", " + r.pick(r.call(), "7") + r.pick(")", ")", ", 8)")
	case 3:
		return r.pick("(SELECT COUNT(*) FROM pens q)", "(SELECT COUNT(p.id))", "(SELECT MAX(p.id) FROM pens q LIMIT 1)", "(SELECT q.id FROM pens q WHERE q.id = p.id)", "(SELECT MAX(q.id) FROM pens q WHERE q.grp = p.grp)", "EXISTS (SELECT 1 FROM pens q HAVING COUNT(p.id) = 0)", "(SELECT 1 FROM pens q ORDER BY COUNT(p.id) LIMIT 1)")
	case 4:
		return r.pick("CASE WHEN p.id > 1 THEN 8 ELSE "+r.call()+" END", "CASE p.id WHEN 1 THEN 20 ELSE 21 END", "@a := 7", "RAND() * 100", "LAST_INSERT_ID(9)", "`count`(p.id)", "VALUES(price)", "DEFAULT(p.grp)", "FIND_IN_SET(1, 1)")
	}
	return r.pick("p.id + ?", "p.grp", "7", "?", "p.price + 7", "p.id + 7", "NULL", "ABS(p.id) + 20", "CAST(p.id AS CHAR)", "'12'")
}

func (r random) cond(inHaving bool) string {
	c := r.pick("1 = 0", "1 = 1", "TRUE", "FALSE", "NULL", "p.id > ?", "p.id = 2", "p.id = 99", "p.grp = 1", "p.id IN (SELECT id FROM pens WHERE grp = 1)", "p.id NOT IN (SELECT id FROM pens)", "EXISTS (SELECT 1 FROM pens q WHERE q.id = p.id AND q.price > ?)",
		"(SELECT COUNT(*) FROM pens) > ?", "p.id = (SELECT MIN(id) FROM pens)", "CASE WHEN p.id THEN 1 ELSE 0 END", "IF(p.id = 1, 1, 0)", "p.id BETWEEN 1 AND ?", "p.price LIKE '1%'", "p.id = 1 OR p.grp = 1", "NOT p.id = 1", "p.id = 1 XOR p.grp = 1", "p.id = ALL (SELECT 1 FROM pens WHERE 1 = 0)", "p.id IS NULL", "p.id < 0", "0")
	if inHaving && r.IntN(2) == 0 {
		c = r.pick("COUNT(*) = 0", "COUNT(*) < 9", "MAX(p.id) IS NULL", "MIN(p.id) = 1", "1", "0", "SUM(p.price) > ?", "1 = 1")
	}
	if r.IntN(4) == 0 {
		c += r.pick(" OR ", " AND ", " XOR ") + r.cond(inHaving)
	}
	return c
}

func (r random) arm() string {
	s := "SELECT " + r.pick("", "", "", "DISTINCT ", "ALL ", "SQL_BUFFER_RESULT ", "SQL_SMALL_RESULT ", "SQL_BIG_RESULT ", "STRAIGHT_JOIN ", "SQL_NO_CACHE ", "SQL_CALC_FOUND_ROWS ") + r.value() + ", " + r.value()
	if r.IntN(8) == 0 {
		s = "SELECT " + r.pick("7, 1", "?, ?", "COUNT(*), 1", "(SELECT COUNT(*) FROM pens), 1", "(SELECT id FROM pens WHERE 1 = 0), 3", "COUNT(*) OVER (), 2", "MAX(7), 3") + r.pick("", "", " FROM DUAL")
		if r.IntN(3) == 0 {
			s += r.pick(" WHERE 1 = 1", " WHERE 1 = 0", " WHERE EXISTS (SELECT 1 FROM pens WHERE id = ?)", " HAVING 1 = 1", " WHERE 1 = 0 HAVING COUNT(*) = 0")
		}
		return s
	}
	s += " FROM " + r.pick("pens p", "pens p", "pens AS p USE INDEX ()", "pens p JOIN pens q ON q.id = p.grp", "pens p LEFT JOIN pens q ON q.id = p.id + 5", "pens q LEFT JOIN pens p ON p.id = q.id + 5", "pens q RIGHT JOIN pens p ON 1 = 0", "(SELECT * FROM pens) p", "(SELECT * FROM pens LIMIT 2) p", "(SELECT COUNT(*) AS id, 3 AS grp, 4 AS price FROM pens WHERE 1 = 0) p", "(SELECT * FROM pens WHERE 1 = 0) p",
		"(SELECT * FROM pens UNION SELECT 8, 8, 8) p", "(SELECT * FROM pens GROUP BY id, grp, price) p", "nothing p", "nothing q LEFT JOIN pens p ON TRUE", "pens p LEFT JOIN nothing q ON TRUE", "pens p NATURAL JOIN pens q", "pens q STRAIGHT_JOIN pens p", "single p", "single q JOIN pens p", "pens p, single q", "pens p, LATERAL (SELECT q.id FROM pens q WHERE q.id = p.id) l", "books p", "books p LEFT JOIN pens q ON q.id = p.id", "parts p", "parts PARTITION (p0) p", "seen p", "counted p")
	if r.IntN(2) == 0 {
		s += " WHERE " + r.cond(false)
	}
	if r.IntN(4) == 0 {
		s += " GROUP BY " + r.pick("p.id", "p.grp", "1", "1, 2", "NULL", "''", "p.id, p.grp, p.price", "(SELECT 1)", "1 + 1", "p.id + p.grp", "RAND()", "p.grp DESC", "()", "CUBE (p.id)", "ALL", "GROUPING SETS ((), (p.id))", "ROLLUP (p.id)", "ROLLUP (p.grp, p.id)", "p.grp WITH ROLLUP", "p.id, ()")
	}
	if r.IntN(4) == 0 {
		s += " HAVING " + r.cond(true)
	}
	return s
}

func (r random) armTail() string {
	s := ""
	if r.IntN(4) == 0 {
		s += " ORDER BY " + r.pick("1", "2 DESC", "COUNT(*)", "p.id", "NULL", "RAND()", "(SELECT 1)", "MAX(p.id)", "SUM(p.id) OVER ()", "(SELECT COUNT(p.id))", "p.id + 1")
	}
	if r.IntN(4) == 0 {
		s += " LIMIT " + r.pick("1", "0", "2 OFFSET 1", "1, 2", "?", "3")
	}
	if r.IntN(6) == 0 {
		s += r.pick(" FOR UPDATE", " LOCK IN SHARE MODE", " FOR UPDATE SKIP LOCKED", " FOR SHARE", " FOR UPDATE NOWAIT", " LOCK IN SHARE MODE SKIP LOCKED", " FOR UPDATE OF p", " FOR UPDATE OF p SKIP LOCKED")
	}
	return s
}

func (r random) rowsQuery() string {
	q := r.arm()
	for r.IntN(4) == 0 {
		next := r.arm()
		if r.IntN(4) == 0 {
			next = r.pick("("+next+r.armTail()+")", "VALUES (7, 1)", "TABLE pens", "(SELECT 7, 1)")
		}
		q += r.pick(" UNION ", " UNION ALL ", " UNION DISTINCT ", " EXCEPT ", " INTERSECT ", " EXCEPT ALL ", " INTERSECT ALL ") + next
	}
	q += r.armTail()
	if r.IntN(6) == 0 {
		q = "(" + q + ")" + r.pick("", "", " LIMIT 1", " ORDER BY 1", " UNION SELECT 7, 1", " FOR UPDATE")
	}
	if r.IntN(6) == 0 {
		q = r.pick("WITH a AS (SELECT * FROM pens) ", "WITH RECURSIVE a (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 3) ", "WITH p AS (SELECT 5 AS id, 6 AS grp, 7 AS price) ", "WITH pens AS (SELECT 1 AS id, 1 AS grp, 1 AS price) ", "WITH nothing AS (SELECT * FROM pens) ") + q
	}
	return q
}

// TestRandomQueries has random queries insert rows. With an old token no row may be inserted. The newest token inserts
// the rows, and no newer one is issued until COMMIT.
func TestRandomQueries(t *testing.T) {
	dsn := setup(t)
	admin := open(t, dsn)
	for _, s := range queried {
		exec(t, admin, s)
	}
	seed, count := harness.Seed(t), harness.Rounds(t, 60)
	for i, m := range modes {
		for j, rules := range []string{"ledger", "both"} {
			t.Run(m.name+"/"+rules, func(t *testing.T) {
				db := fence(t, m.with(t, dsn), rulesets[rules]...)
				db.SetMaxIdleConns(0) // each connection gets new settings
				r := random{rand.New(rand.NewPCG(seed, uint64(10*i+j)))}
				inserted := 0
				for range count {
					inserted += oneQuery(t, r, db, admin)
				}
				if inserted < count/10 {
					t.Errorf("%d of %d queries inserted rows", inserted, count)
				}
			})
		}
	}
}

func oneQuery(t *testing.T, r random, db, admin *sql.DB) (inserted int) {
	t.Helper()
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var settings []string
	for range r.IntN(3) {
		set := plans[r.IntN(len(plans))]
		if _, err := conn.ExecContext(context.Background(), set); err == nil {
			settings = append(settings, set)
		}
	}
	query := r.pick("INSERT INTO", "INSERT INTO", "INSERT IGNORE INTO", "REPLACE INTO") + " books (id, price) " + r.rowsQuery()
	args := r.args(query)
	for _, token := range []int64{3, 5} {
		tx, err := conn.BeginTx(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.ExecContext(holding(token), query, args...)
		rows := 0
		if err == nil {
			if err := tx.QueryRow("SELECT COUNT(*) FROM books").Scan(&rows); err != nil {
				t.Fatal(err)
			}
		}
		switch {
		case rows == 0:
		case token < 5:
			t.Errorf("%s %v: %d STALE ROWS LANDED; %v", query, args, rows, settings)
		default:
			inserted = 1
			var newest int64
			if err := admin.QueryRow("SELECT token FROM fencing_tokens WHERE name = 'books' FOR UPDATE NOWAIT").Scan(&newest); err == nil {
				t.Errorf("%s %v: a token could be issued before COMMIT; %v", query, args, settings)
			}
		}
		_ = tx.Rollback()
	}
	return inserted
}
