package catalogue

import (
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/dialect/postgres/sealsql"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// The queries about the catalogue. What stands in braces is filled in.

// Temporary tables of other sessions are omitted.
const postgresRelations = `SELECT c.oid::pg_catalog.text, n.nspname::pg_catalog.text, c.relname::pg_catalog.text,
	pg_catalog.pg_table_is_visible(c.oid)::pg_catalog.text, c.relkind::pg_catalog.text, c.relpersistence::pg_catalog.text,
	pg_catalog.has_table_privilege(c.oid, 'DELETE')::pg_catalog.text, c.relispartition::pg_catalog.text
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
	AND (NOT pg_catalog.starts_with(n.nspname::pg_catalog.text, 'pg_temp_') OR n.oid = pg_catalog.pg_my_temp_schema())
	AND c.relname IN (`

// postgresTables are the names of all tables.
const postgresTables = `SELECT c.relname::pg_catalog.text FROM pg_catalog.pg_class AS c
	JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
	AND NOT pg_catalog.starts_with(n.nspname::pg_catalog.text, 'pg_')`

// postgresFenced is a condition to append: tables with a fence column, or a seal.
const postgresFenced = ` AND (EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid
	AND a.attname = '` + recognisedColumn + `' AND NOT a.attisdropped)
	OR EXISTS (SELECT FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid = c.oid
	AND g.tgname = '` + sqltext.SealTrigger + `'))
ORDER BY 1`

// A domain's type is the last base type.
const postgresColumns = `SELECT a.attrelid::pg_catalog.text, a.attname::pg_catalog.text,
	(WITH RECURSIVE b(oid, base) AS (
		SELECT t.oid, t.typbasetype FROM pg_catalog.pg_type AS t WHERE t.oid = a.atttypid
		UNION ALL SELECT t.oid, t.typbasetype FROM pg_catalog.pg_type AS t JOIN b ON t.oid = b.base)
	SELECT t.typname::pg_catalog.text FROM b JOIN pg_catalog.pg_type AS t ON t.oid = b.oid WHERE b.base = 0),
	pg_catalog.format_type(a.atttypid, a.atttypmod), (NOT a.attnotnull)::pg_catalog.text,
	COALESCE(pg_catalog.pg_get_expr(d.adbin, d.adrelid), ''), CASE WHEN a.attgenerated <> '' THEN 'computed'
	WHEN a.attidentity = 'a' THEN 'identity' ELSE '' END,
	COALESCE((NOT o.collisdeterministic)::pg_catalog.text, ''),
	pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT')::pg_catalog.text,
	pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'INSERT')::pg_catalog.text,
	pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'UPDATE')::pg_catalog.text, ''
FROM pg_catalog.pg_attribute AS a
LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_catalog.pg_collation AS o ON o.oid = a.attcollation
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid IN ({asked}) ORDER BY a.attrelid, a.attnum`

// postgresKeys is a query for the columns of keys, indexes and partition keys. It returns the expressions of an index
// or a generated column, because they may use further columns.
const postgresKeys = `SELECT i.indrelid::pg_catalog.text,
	CASE WHEN i.indisprimary THEN 'primary key' WHEN i.indisunique THEN 'unique index'
	WHEN i.indisexclusion THEN 'exclusion constraint' ELSE 'index' END AS kind,
	c.relname::pg_catalog.text, a.attname::pg_catalog.text,
	pg_catalog.concat_ws(' ', pg_catalog.pg_get_expr(i.indpred, i.indrelid),
	pg_catalog.pg_get_expr(i.indexprs, i.indrelid), pg_catalog.pg_get_expr(d.adbin, d.adrelid)), k.turn
FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
CROSS JOIN LATERAL pg_catalog.generate_series(0, pg_catalog.int4mi(i.indnkeyatts, 1)) AS k(turn)
LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k.turn]
LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated <> ''
WHERE i.indrelid IN ({of})
UNION ALL SELECT f.conrelid::pg_catalog.text, 'foreign key', f.conname::pg_catalog.text, a.attname::pg_catalog.text,
	'', 0
FROM pg_catalog.pg_constraint AS f JOIN pg_catalog.pg_attribute AS a ON a.attrelid = f.conrelid
	AND a.attnum = ANY (f.conkey)
WHERE f.contype = 'f' AND f.conrelid IN ({of})
UNION ALL SELECT p.partrelid::pg_catalog.text, 'partition key', '', a.attname::pg_catalog.text,
	COALESCE(pg_catalog.pg_get_expr(p.partexprs, p.partrelid), ''), k.turn
FROM pg_catalog.pg_partitioned_table AS p CROSS JOIN LATERAL
	pg_catalog.generate_series(0, pg_catalog.int4mi(p.partnatts, 1)) AS k(turn)
LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[k.turn]
WHERE p.partrelid IN ({of})
ORDER BY 1, 2, 3, 6`

// postgresViews is a query for writable views on some tables, and on such views; 28 is INSERT, UPDATE and DELETE.
// OFFSET 0 keeps PostgreSQL from reading the definitions of all views first, which takes 25 ms.
const postgresViews = `WITH RECURSIVE used(oid) AS (
	SELECT c.oid FROM pg_catalog.pg_class AS c WHERE c.oid IN ({of})
	UNION SELECT r.ev_class FROM used AS u
	JOIN pg_catalog.pg_depend AS d ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = u.oid
	AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
	JOIN pg_catalog.pg_rewrite AS r ON r.oid = d.objid AND r.ev_type = '1')
SELECT n.nspname::pg_catalog.text, c.relname::pg_catalog.text, pg_catalog.pg_get_viewdef(c.oid)
FROM (SELECT c.* FROM used AS u JOIN pg_catalog.pg_class AS c ON c.oid = u.oid WHERE c.relkind = 'v' OFFSET 0) AS c
	JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE pg_catalog.int4and(pg_catalog.pg_relation_is_updatable(c.oid, false), 28) <> 0 ORDER BY 1, 2`

// postgresLinks is a query for links. Its items down and up have the tables' partitions, children and parents. The item
// behind has what a view reads and the partitions and children of a table, to find foreign tables. The query omits a
// partition's foreign keys, which are its parent's. Every role may read these columns of pg_subscription.
const postgresLinks = `WITH RECURSIVE
down(root, oid) AS (
	SELECT i.inhparent, i.inhrelid FROM pg_catalog.pg_inherits AS i WHERE i.inhparent IN ({of})
	UNION SELECT d.root, i.inhrelid FROM down AS d JOIN pg_catalog.pg_inherits AS i ON i.inhparent = d.oid),
up(root, oid) AS (
	SELECT i.inhrelid, i.inhparent FROM pg_catalog.pg_inherits AS i WHERE i.inhrelid IN ({of})
	UNION SELECT u.root, i.inhparent FROM up AS u JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = u.oid),
behind(root, oid) AS (
	SELECT c.oid, c.oid FROM pg_catalog.pg_class AS c WHERE c.oid IN ({of})
	UNION SELECT b.root, x.oid FROM behind AS b CROSS JOIN LATERAL (
		SELECT d.refobjid FROM pg_catalog.pg_rewrite AS r
		JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid
	AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
		WHERE r.ev_class = b.oid AND r.ev_type = '1'
		UNION ALL SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = b.oid) AS x(oid)),
links(kind, root, oid, detail, more) AS (
	SELECT CASE WHEN r.ev_class = d.refobjid THEN 'own rule' ELSE 'rule' END, d.refobjid, r.ev_class,
	r.rulename::pg_catalog.text,
		pg_catalog.substr(x.def, pg_catalog.int4pl(pg_catalog.strpos(x.def, ' DO '), 4))
	FROM pg_catalog.pg_rewrite AS r CROSS JOIN LATERAL pg_catalog.pg_get_ruledef(r.oid) AS x(def)
	JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid
	AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
	WHERE r.ev_type <> '1' AND d.refobjid IN ({of})
	UNION ALL SELECT 'cascade', k.conrelid, k.confrelid,
		pg_catalog.concat(CASE WHEN k.confupdtype = 'c' THEN ' ON UPDATE CASCADE'
	WHEN k.confupdtype = 'n' THEN ' ON UPDATE SET NULL' WHEN k.confupdtype = 'd' THEN ' ON UPDATE SET DEFAULT' END,
		CASE WHEN k.confdeltype = 'c' THEN ' ON DELETE CASCADE' WHEN k.confdeltype = 'n' THEN ' ON DELETE SET NULL'
	WHEN k.confdeltype = 'd' THEN ' ON DELETE SET DEFAULT' END), ''
	FROM pg_catalog.pg_constraint AS k
	WHERE k.contype = 'f' AND k.conparentid = 0 AND (k.confdeltype IN ('c', 'n', 'd')
	OR k.confupdtype IN ('c', 'n', 'd')) AND k.conrelid IN ({of})
	UNION ALL SELECT 'partition', d.root, d.oid, CASE WHEN p.relispartition THEN 'partition' ELSE 'child table' END, ''
	FROM down AS d JOIN pg_catalog.pg_class AS p ON p.oid = d.oid WHERE p.relkind IN ('r', 'p')
	UNION ALL SELECT 'partition', u.root, u.oid, 'parent table', '' FROM up AS u
	JOIN pg_catalog.pg_class AS p ON p.oid = u.oid WHERE p.relkind IN ('r', 'p')
	UNION ALL SELECT 'foreign table', b.root, b.oid, '',
	(pg_catalog.int4and(pg_catalog.pg_relation_is_updatable(b.root, true), 28) <> 0)::pg_catalog.text
	FROM behind AS b JOIN pg_catalog.pg_class AS c ON c.oid = b.oid WHERE c.relkind = 'f' AND b.oid <> b.root
	UNION ALL SELECT 'subscription', t.root, t.root, s.subname::pg_catalog.text, ''
	FROM (SELECT root, oid FROM down UNION SELECT c.oid, c.oid FROM pg_catalog.pg_class AS c WHERE c.oid IN ({of})) AS t
	JOIN pg_catalog.pg_subscription_rel AS r ON r.srrelid = t.oid
	JOIN pg_catalog.pg_subscription AS s ON s.oid = r.srsubid)
SELECT DISTINCT x.kind, x.root::pg_catalog.text, CASE WHEN x.kind = 'subscription' THEN ''
	ELSE n.nspname::pg_catalog.text END,
	CASE WHEN x.kind = 'subscription' THEN '' ELSE c.relname::pg_catalog.text END, x.detail, x.more
FROM links AS x JOIN pg_catalog.pg_class AS c ON c.oid = x.oid
	JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace ORDER BY 1, 2, 5, 3, 4, 6`

// postgresCode is a query for stored code. A function with an SQL-standard body (BEGIN ATOMIC) has no source text, so
// the query returns its definition. It omits the functions of pg_catalog, because their effects are known.
const postgresCode = `SELECT p.kind,
	pg_catalog.concat(CASE WHEN p.kind = 'trigger' THEN 'function ' END, p.name), p.tables,
	p.shown, p.body, p.proname::pg_catalog.text, '', '' FROM (
	SELECT p.oid, p.proname, CASE WHEN g.tables IS NOT NULL THEN 'trigger' WHEN p.prokind = 'p' THEN 'procedure'
	ELSE 'function' END AS kind,
		pg_catalog.concat(CASE WHEN NOT pg_catalog.pg_function_is_visible(p.oid)
	THEN pg_catalog.concat(pg_catalog.quote_ident(n.nspname), '.') END, pg_catalog.quote_ident(p.proname)) AS name,
		COALESCE(g.tables, '') AS tables, COALESCE(g.shown, '') AS shown,
		CASE WHEN p.prosrc <> '' THEN p.prosrc ELSE pg_catalog.pg_get_functiondef(p.oid) END AS body
	FROM pg_catalog.pg_proc AS p
	JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace JOIN pg_catalog.pg_language AS x ON x.oid = p.prolang
	LEFT JOIN LATERAL (SELECT pg_catalog.string_agg(t.tgrelid::pg_catalog.text, ',' ORDER BY t.oid) AS tables,
			pg_catalog.string_agg(DISTINCT t.tgrelid::pg_catalog.regclass::pg_catalog.text, ', ') AS shown
		FROM pg_catalog.pg_trigger AS t WHERE t.tgfoid = p.oid AND NOT t.tgisinternal ` +
	`AND t.tgenabled <> 'D') AS g ON true
	WHERE x.lanname NOT IN ('internal', 'c') AND p.prokind IN ('f', 'p')
	AND n.nspname NOT IN ('pg_catalog', 'information_schema')
	OFFSET 0) AS p
WHERE EXISTS (SELECT FROM pg_catalog.unnest(ARRAY[{words}]::pg_catalog.text[]) AS w
	WHERE pg_catalog.strpos(pg_catalog.lower(p.body), w) > 0)
ORDER BY 1, 2, p.oid`

// postgresLedger is a query for the defects of a ledger: reasons why a token could be issued twice; missing or changed
// triggers; a missing function [sqltext.LedgerFunction], through which guards read the ledger; and this function, or a
// procedure for other languages, if it differs from the one that Setup creates.
const postgresLedger = `SELECT c.oid::pg_catalog.text, 'unfit', CASE
	WHEN c.relkind <> 'r' THEN 'it is not an ordinary table'
	WHEN c.relpersistence = 'u' THEN 'it is UNLOGGED, so that a crash of the server empties it, and tokens begin again at 1'
	WHEN c.relpersistence = 't' THEN 'it is a temporary table of this session'
	WHEN NOT EXISTS (SELECT FROM pg_catalog.pg_index AS i
		JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
		WHERE i.indrelid = c.oid AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indnkeyatts = 1
	AND i.indpred IS NULL AND a.attname = 'name')
		THEN 'its column name is not unique'
	WHEN pg_catalog.row_security_active(c.oid)
		THEN 'its row-level security applies to this role, and PostgreSQL may then not evaluate a guard'
	ELSE '' END
FROM pg_catalog.pg_class AS c WHERE c.oid IN ({ledgers})
UNION ALL SELECT c.oid::pg_catalog.text, 'unkept',
	pg_catalog.concat('the trigger ', w.name, CASE WHEN g.oid IS NULL THEN ' is missing'
	WHEN g.tgenabled <> 'A' THEN ' isn''t ENABLE ALWAYS' ELSE ' isn''t what Setup creates' END)
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN (VALUES ('` + sqltext.LedgerTrigger + `'), ('` + sqltext.LedgerTruncateTrigger + `'),
	('` + sqltext.LedgerBoundTrigger + `')) AS w (name)
LEFT JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = c.oid AND g.tgname = w.name
WHERE ({trigger}) IS NOT TRUE AND c.oid IN ({ledgers})
UNION ALL SELECT c.oid::pg_catalog.text, 'unrecorded', pg_catalog.concat('the trigger ` + pg.IssuedTrigger + `',
	CASE WHEN g.oid IS NULL THEN ' is missing' ELSE ' isn''t what RecordIssuers creates' END)
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = c.oid AND g.tgname = '` + pg.IssuedTrigger + `'
WHERE ({recorded}) IS NOT TRUE AND c.oid IN ({ledgers})
UNION ALL SELECT a.attrelid::pg_catalog.text, 'unrecorded',
	pg_catalog.concat('the column ', a.attname, ' has no default')
FROM pg_catalog.pg_attribute AS a WHERE a.attname IN ('` + sqltext.IssuedBy + `', '` + sqltext.IssuedAt + `')
	AND NOT a.attisdropped AND NOT a.atthasdef AND a.attrelid IN ({ledgers})
UNION ALL SELECT c.oid::pg_catalog.text, 'function', p.proname::pg_catalog.text
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace ` +
	`JOIN pg_catalog.pg_proc AS p ON {named}
LEFT JOIN pg_catalog.pg_proc AS q ON {turns}
WHERE ({function}) IS NOT TRUE AND c.oid IN ({ledgers})
UNION ALL SELECT c.oid::pg_catalog.text, 'no function', '` + sqltext.LedgerFunction + `'
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid IN ({ledgers}) AND NOT EXISTS (SELECT FROM pg_catalog.pg_proc AS p WHERE {named})
UNION ALL SELECT c.oid::pg_catalog.text, 'procedure', p.proname::pg_catalog.text
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_proc AS p ON p.pronamespace = c.relnamespace ` +
	`JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
WHERE p.proname IN ({procedures}) AND ({procedure}) IS NOT TRUE AND c.oid IN ({ledgers}) ORDER BY 1, 2, 3`

// postgresSettings is a query for settings, and for three more facts: the session's role, whether it is a superuser,
// and the roles, databases and functions that set session_replication_role, which switches ordinary triggers off.
const postgresSettings = `SELECT name, setting FROM pg_catalog.pg_settings
	WHERE name IN ('synchronous_commit', 'fsync', 'idle_in_transaction_session_timeout', 'session_replication_role',
	'lock_timeout')
UNION ALL SELECT 'the session''s role', pg_catalog.quote_ident(CURRENT_USER)
UNION ALL SELECT 'superuser', r.rolsuper::pg_catalog.text FROM pg_catalog.pg_roles AS r WHERE r.rolname = CURRENT_USER
UNION ALL SELECT 'replicas', COALESCE(pg_catalog.string_agg(x.name, ', ' ORDER BY x.name), '') FROM (
	SELECT CASE WHEN s.setrole = 0 THEN 'every role of a database'
	ELSE pg_catalog.concat('role ', pg_catalog.pg_get_userbyid(s.setrole)) END AS name, s.setconfig AS config
	FROM pg_catalog.pg_db_role_setting AS s
	WHERE s.setdatabase IN (0, (SELECT d.oid FROM pg_catalog.pg_database AS d
	WHERE d.datname = pg_catalog.current_database()))
	UNION ALL SELECT pg_catalog.concat('function ', p.oid::pg_catalog.regproc), p.proconfig FROM pg_catalog.pg_proc AS p
	WHERE p.proconfig IS NOT NULL) AS x
WHERE EXISTS (SELECT FROM pg_catalog.unnest(x.config) AS c
	WHERE pg_catalog.lower(c) = 'session_replication_role=replica')`

// postgresGrantees is a query for the owners of relations and other roles with privileges on them: whether a role may
// write, and whether it may create triggers. It omits the current role, and superusers, who may do anything.
const postgresGrantees = `SELECT c.oid::pg_catalog.text, COALESCE(r.rolname::pg_catalog.text, 'PUBLIC'),
	pg_catalog.bool_or(g.privilege_type IS NULL OR g.privilege_type IN ('INSERT', 'UPDATE', 'DELETE',
	'TRUNCATE'))::pg_catalog.text,
	pg_catalog.bool_or(g.privilege_type IS NULL OR g.privilege_type = 'TRIGGER')::pg_catalog.text
FROM pg_catalog.pg_class AS c
CROSS JOIN LATERAL (
	SELECT x.grantee, x.privilege_type FROM pg_catalog.aclexplode(c.relacl) AS x
	UNION ALL SELECT x.grantee, x.privilege_type FROM pg_catalog.pg_attribute AS a
	CROSS JOIN LATERAL pg_catalog.aclexplode(a.attacl) AS x WHERE a.attrelid = c.oid
	UNION ALL SELECT c.relowner, NULL) AS g
LEFT JOIN pg_catalog.pg_roles AS r ON r.oid = g.grantee
WHERE NOT COALESCE(r.rolsuper, false) AND (r.rolname IS NULL OR r.rolname <> CURRENT_USER) AND c.oid IN ({of})
GROUP BY 1, 2 ORDER BY 1, 2`

// postgresSeal is a query for the parts of a table's seal: kind, name, the definition that Seal would create, the
// existing definition, and the problem. A table's partitions and children have separate triggers.
const postgresSeal = `SELECT {id}, parts.* FROM (WITH RECURSIVE {wanted},
	about (root, home, parted, ledger) AS MATERIALIZED (SELECT s.root, s.home, s.parted,
	(SELECT pg_catalog.format('%I.%I', n.nspname, c.relname)
		FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
	WHERE c.oid = pg_catalog.to_regclass({ledger name})) FROM source AS s)
SELECT 'has', '', '', '', '' FROM source AS s WHERE EXISTS (SELECT FROM pg_catalog.pg_trigger AS g
	JOIN wanted AS w ON w.name = g.tgname WHERE g.tgrelid = s.root)
UNION ALL SELECT 'late', pg_catalog.concat(g.tgname, ' of ', tree.oid::pg_catalog.regclass), '', '',
	'is fired after it, and may change what it has compared'
	FROM tree JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = tree.oid WHERE ` + sqltext.FiredAfterSeal + `
UNION ALL SELECT 'trigger', pg_catalog.concat(w.name, ' of ', w.part::pg_catalog.regclass), '', '',
	CASE WHEN g.oid IS NULL THEN 'is missing'
	WHEN g.tgenabled = 'O' THEN 'isn''t ENABLE ALWAYS, and not fired in a session that calls itself a replica'
	WHEN g.tgenabled <> 'A' THEN 'is switched off'
	WHEN (` + sealsql.Same + `) IS NOT TRUE THEN pg_catalog.concat('isn''t that of a seal: ',
	pg_catalog.pg_get_triggerdef(g.oid)) ELSE '' END
	FROM wanted AS w LEFT JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = w.part AND g.tgname = w.name
UNION ALL SELECT 'function', f.name, f.body, COALESCE(p.prosrc, ''), CASE WHEN p.oid IS NULL THEN 'is missing'
	WHEN p.prosecdef <> f.definer OR p.provolatile <> CASE WHEN f.definer THEN 's' ELSE 'v' END
	OR p.proconfig IS NOT NULL OR l.lanname <> 'plpgsql' THEN 'isn''t that of a seal, but of another language or with settings'
	WHEN NOT pg_catalog.has_function_privilege('public', p.oid, 'EXECUTE') THEN 'can''t be run by all roles'
	WHEN NOT pg_catalog.pg_has_role(p.proowner, c.relowner, 'MEMBER') THEN pg_catalog.concat('belongs to ',
	pg_catalog.pg_get_userbyid(p.proowner), ', who may replace it, and doesn''t own the table') ELSE '' END
	FROM about JOIN pg_catalog.pg_class AS c ON c.oid = about.root
	CROSS JOIN LATERAL (VALUES {functions}) AS f (name, takes, definer, body)
	LEFT JOIN pg_catalog.pg_proc AS p ON p.oid = pg_catalog.to_regprocedure(pg_catalog.format('%I.%I(%s)', home, f.name, f.takes))
	LEFT JOIN pg_catalog.pg_language AS l ON l.oid = p.prolang
UNION ALL SELECT 'constraint', k.name, pg_catalog.format('CHECK ((%I >= 0))', {column}),
	COALESCE(pg_catalog.replace(pg_catalog.pg_get_constraintdef(c.oid), 'OPERATOR(pg_catalog.>=)', '>='), ''),
	CASE WHEN c.oid IS NULL THEN 'is missing' ELSE '' END
	FROM source AS s CROSS JOIN (VALUES ('` + sqltext.SealedPrefix +
	`')) AS k (name) LEFT JOIN pg_catalog.pg_constraint AS c ON c.conrelid = s.root AND c.conname = k.name
) AS parts (kind, name, wants, is_now, problem)`
