package catalogue

import (
	my "github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// The queries about the catalogue. What stands in braces is filled in.

// mysqlTables are the names of all tables. MariaDB's catalogue lists a sequence as a table.
const mysqlTables = `SELECT DISTINCT table_name FROM information_schema.tables
	WHERE table_schema ` + my.NotTheServers + ` AND table_type NOT IN ('VIEW', 'SEQUENCE') ORDER BY 1`

// mysqlFenced are the names of the tables with a fence column, or a seal, in some schemas.
const mysqlFenced = `SELECT table_name FROM information_schema.columns
	WHERE %s AND LOWER(column_name) = '` + recognisedColumn + `'
UNION SELECT event_object_table FROM information_schema.triggers
	WHERE %s AND trigger_name LIKE '` + sqltext.SealPrefix + `%%' ORDER BY 1`

// mysqlColumns is a query for the columns of tables. In its result a role's privileges on a column include those on the
// table.
const mysqlColumns = `SELECT CONCAT(table_schema, '.', table_name), column_name, LOWER(data_type), column_type,
	CASE WHEN is_nullable = 'YES' THEN 1 ELSE 0 END, COALESCE(column_default, ''),
	CASE WHEN COALESCE(generation_expression, '') <> '' THEN 'computed' ELSE '' END,
	CASE WHEN RIGHT(COALESCE(collation_name, '_bin'), 4) <> '_bin' AND collation_name <> 'binary' THEN 1 ELSE 0 END,
	CASE WHEN FIND_IN_SET('select', LOWER(privileges)) > 0 THEN 1 ELSE 0 END,
	CASE WHEN FIND_IN_SET('insert', LOWER(privileges)) > 0 THEN 1 ELSE 0 END,
	CASE WHEN FIND_IN_SET('update', LOWER(privileges)) > 0 THEN 1 ELSE 0 END,
	CASE WHEN LOCATE('STRICT_', @@SESSION.sql_mode) > 0 THEN 1 ELSE 0 END
FROM information_schema.columns WHERE table_schema {not the servers} AND {asked} ORDER BY 1, ordinal_position`

// mysqlExpression is a query for the SQL that reads the expression of an index: a column of
// information_schema.statistics in MySQL, NULL in MariaDB, which has no such column.
const mysqlExpression = `SELECT CASE WHEN COUNT(*) > 0 THEN 's.expression' ELSE 'NULL' END
	FROM information_schema.columns
WHERE LOWER(table_schema) = 'information_schema' AND LOWER(table_name) = 'statistics'
	AND LOWER(column_name) = 'expression'`

// mysqlKeys is a query for the columns of keys and indexes. For a generated column and for a functional index it
// returns the expression, which may use further columns.
const mysqlKeys = `SELECT CONCAT(s.table_schema, '.', s.table_name) AS id,
	CASE WHEN s.index_name = 'PRIMARY' THEN 'primary key' WHEN s.non_unique = 0 THEN 'unique index'
	ELSE 'index' END AS kind,
	CASE WHEN s.index_name = 'PRIMARY' THEN '' ELSE s.index_name END AS name, COALESCE(s.column_name, ''),
	CONCAT(COALESCE(c.generation_expression, ''), ' ', COALESCE({expression}, '')), s.seq_in_index AS turn
FROM information_schema.statistics AS s LEFT JOIN information_schema.columns AS c ON c.table_schema = s.table_schema
	AND c.table_name = s.table_name AND c.column_name = s.column_name
WHERE {of s}
UNION ALL SELECT CONCAT(table_schema, '.', table_name), 'foreign key', constraint_name, column_name, '',
	ordinal_position FROM information_schema.key_column_usage
WHERE referenced_table_name IS NOT NULL AND {of} ORDER BY id, kind, name, turn`

const mysqlViews = `SELECT table_schema, table_name, view_definition FROM information_schema.views
	WHERE is_updatable = 'YES' AND table_schema {not the servers} ORDER BY 1, 2`

const mysqlCascades = `SELECT 'cascade', CONCAT(constraint_schema, '.', table_name), unique_constraint_schema,
	referenced_table_name,
	CONCAT(CASE WHEN update_rule IN ('NO ACTION', 'RESTRICT') THEN '' ELSE CONCAT('ON UPDATE ', update_rule, ' ') END,
	CASE WHEN delete_rule IN ('NO ACTION', 'RESTRICT') THEN '' ELSE CONCAT('ON DELETE ', delete_rule) END)
FROM information_schema.referential_constraints WHERE {asked k}
	AND (update_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR delete_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT'))
ORDER BY 2, 3, 4, constraint_name`

// mysqlCode ends with the beginning of a condition; the caller appends the words of codeWords.
const mysqlCode = `SELECT kind, CASE WHEN home = DATABASE() OR kind = 'trigger' THEN bare
	ELSE CONCAT(home, '.', bare) END, fires, shown, COALESCE(code, ''), bare, home, CASE WHEN code IS NULL THEN 1
	ELSE 0 END FROM (
	SELECT LOWER(routine_type) AS kind, routine_schema AS home, routine_name AS bare, '' AS fires, '' AS shown,
	routine_definition AS code FROM information_schema.routines WHERE routine_schema {not the servers}
	UNION ALL SELECT 'trigger', trigger_schema, trigger_name, CONCAT(event_object_schema, '.', event_object_table),
	event_object_table, action_statement
		FROM information_schema.triggers WHERE trigger_schema {not the servers}
	UNION ALL SELECT 'event', event_schema, event_name, '', '', event_definition FROM information_schema.events
	WHERE event_schema {not the servers}) AS x
WHERE code IS NULL `

const mysqlSettings = `SHOW VARIABLES WHERE Variable_name IN ('sql_mode', 'binlog_format', 'log_bin',
	'innodb_flush_log_at_trx_commit', 'idle_transaction_timeout', 'innodb_lock_wait_timeout')`

// mysqlGrants is a query for the roles that may write to tables or to their triggers. A session sees the privileges of
// other roles only if it may read the tables of the schema mysql. Privileges on all tables belong to administrators and
// are omitted, except TRIGGER, which decides whether this session sees triggers.
//
// No constant in the query contains a quote, or MySQL couldn't read information_schema under NO_BACKSLASH_ESCAPES.
const mysqlGrants = `SELECT DISTINCT grantee, table_schema, table_name, privilege_type, CURRENT_USER(), everywhere
	FROM (
	SELECT grantee, table_schema, '' AS table_name, privilege_type, 0 AS everywhere
	FROM information_schema.schema_privileges
	UNION ALL SELECT grantee, table_schema, table_name, privilege_type, 0 FROM information_schema.table_privileges
	UNION ALL SELECT grantee, table_schema, table_name, privilege_type, 0 FROM information_schema.column_privileges
	UNION ALL SELECT grantee, '%', '', privilege_type, 1 FROM information_schema.user_privileges
	WHERE privilege_type = 'TRIGGER') AS x
WHERE privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'DROP', 'ALTER', 'TRIGGER') ORDER BY 1, 2, 3, 4`

const mysqlLedgerTriggers = `SELECT CONCAT(event_object_schema, '.', event_object_table), trigger_name,
	action_statement FROM information_schema.triggers WHERE {ledgers}`

// mysqlSeals is a query for BEFORE triggers. A trigger runs as the account that created it. If the session sees that
// this account is gone, or lacks the privilege TRIGGER, the last column has this problem.
const mysqlSeals = `SELECT CONCAT(t.event_object_schema, '.', t.event_object_table), t.event_manipulation,
	t.action_statement, t.trigger_name,
	CASE WHEN t.definer = CURRENT_USER() OR (SELECT COUNT(DISTINCT p.grantee)
	FROM information_schema.user_privileges AS p) < 2 THEN ''
	WHEN NOT EXISTS (SELECT 1 FROM information_schema.user_privileges AS p
	WHERE {is definer}) THEN CONCAT('there is no account ', t.definer, ' any more, and they run as that')
	WHEN NOT EXISTS (SELECT 1 FROM information_schema.user_privileges AS p WHERE {is definer}
	AND p.privilege_type = 'TRIGGER')
		AND NOT EXISTS (SELECT 1 FROM information_schema.schema_privileges AS p WHERE {is definer}
	AND p.privilege_type = 'TRIGGER' AND t.event_object_schema LIKE p.table_schema)
		AND NOT EXISTS (SELECT 1 FROM information_schema.table_privileges AS p WHERE {is definer}
	AND p.privilege_type = 'TRIGGER' AND p.table_schema = t.event_object_schema AND p.table_name = t.event_object_table)
		THEN CONCAT('the account ', t.definer, ' that they run as lacks the privilege TRIGGER') ELSE '' END
FROM information_schema.triggers AS t WHERE t.action_timing = 'BEFORE' AND {of t} ORDER BY 1, 2, t.action_order`

const isDefiner = `REPLACE(p.grantee, '''', '') = t.definer`
