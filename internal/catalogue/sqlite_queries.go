package catalogue

// The queries about the catalogue. What stands in braces is filled in.

// noType is the type of a column that was declared without one.
const noType = "(none)"

// Hidden are generated columns, 2 and 3, and those of virtual tables, 1.
const sqliteColumns = `SELECT {text} || '.' || m.name, c.name, c.type, CASE c.type
	WHEN '' THEN '` + noType + `' ELSE c.type END, c."notnull" = 0, c.dflt_value,
	CASE WHEN c.hidden > 1 THEN 'computed' ELSE '' END, 0, 1, 1, 1, 0, c.cid
FROM {schema}.sqlite_master AS m, pragma_table_xinfo(m.name, {text}) AS c WHERE m.type IN ('table', 'view') ` +
	`AND {text} || '.' || m.name IN ({asked})`

// An index that a constraint has made has no text.
const sqliteKeys = `SELECT {text} || '.' || m.name, CASE WHEN i.origin = 'pk' THEN 'primary key'
	WHEN i."unique" THEN 'unique index' ELSE 'index' END AS kind, CASE WHEN i.origin = 'pk' THEN '' ELSE i.name END,
	x.name,
	COALESCE((SELECT substr(s.sql, instr(s.sql, '(')) FROM {schema}.sqlite_master AS s WHERE s.type = 'index'
	AND s.name = i.name), ''), x.seqno
FROM {schema}.sqlite_master AS m, pragma_index_list(m.name, {text}) AS i, pragma_index_xinfo(i.name, {text}) AS x
	WHERE m.type = 'table' AND x."key" AND {text} || '.' || m.name IN ({of})
UNION ALL SELECT {text} || '.' || m.name, 'primary key', '', c.name, '', c.pk FROM {schema}.sqlite_master AS m,
	pragma_table_info(m.name, {text}) AS c
WHERE m.type = 'table' AND c.pk AND NOT EXISTS (SELECT 1 FROM pragma_index_list(m.name, {text}) AS i
	WHERE i.origin = 'pk') AND {text} || '.' || m.name IN ({of})
UNION ALL SELECT {text} || '.' || m.name, 'foreign key', 'to ' || f."table", f."from", '', f.seq
	FROM {schema}.sqlite_master AS m, pragma_foreign_key_list(m.name, {text}) AS f
WHERE m.type = 'table' AND {text} || '.' || m.name IN ({of})`

const sqliteCascades = `SELECT DISTINCT 'cascade', {text} || '.' || m.name, {text}, f."table",
	CASE WHEN f.on_update IN ('NO ACTION', 'RESTRICT') THEN '' ELSE ' ON UPDATE ' || f.on_update END ||
	CASE WHEN f.on_delete IN ('NO ACTION', 'RESTRICT') THEN '' ELSE ' ON DELETE ' || f.on_delete END AS actions
FROM {schema}.sqlite_master AS m, pragma_foreign_key_list(m.name, {text}) AS f
WHERE m.type = 'table' AND actions <> '' AND {text} || '.' || m.name IN ({of})`

const sqliteCode = `SELECT {text}, name, tbl_name, sql FROM {schema}.sqlite_master
WHERE type = 'trigger' AND EXISTS (SELECT 1 FROM json_each({words}) AS w WHERE instr(lower(sql), w.value) > 0)`

const sqliteLedgerTriggers = `SELECT {text} || '.' || tbl_name, name, sql FROM {schema}.sqlite_master
	WHERE type = 'trigger' AND {text} || '.' || tbl_name IN ({ledgers})`

// sqliteNameKeys is a query for the keys that consist of the ledger's column name alone: an empty text for the primary
// key, and the collation of each unique index. It returns no row if names aren't unique.
const sqliteNameKeys = `SELECT '' AS coll FROM pragma_table_info(m.name, {text}) GROUP BY 1 HAVING sum(pk > 0) = 1
	AND sum(pk > 0 AND lower(name) = 'name') = 1
	UNION ALL SELECT c.coll FROM pragma_index_list(m.name, {text}) AS i, pragma_index_xinfo(i.name, {text}) AS c
	WHERE i."unique" AND NOT i.partial AND c."key" AND lower(c.name) = 'name'
	AND (SELECT count(*) FROM pragma_index_info(i.name, {text})) = 1`

// sqliteLedger is a query for reasons why a relation can't be a ledger. Names must be unique, because Issue's upsert
// fails without a unique name, although a guard could take the highest token of several rows.
const sqliteLedger = `SELECT {text} || '.' || m.name, 'unfit', CASE WHEN m.type <> 'table' THEN 'it is a ' || m.type
	WHEN NOT EXISTS (` + sqliteNameKeys + `) THEN 'its column name is not unique'
	WHEN EXISTS (SELECT 1 FROM (` + sqliteNameKeys + `) AS k WHERE k.coll <> ''
	AND upper(k.coll) <> 'BINARY') THEN 'names in it that aren''t the same count as equal' ELSE '' END
FROM {schema}.sqlite_master AS m WHERE m.type IN ('table', 'view') AND {text} || '.' || m.name IN ({ledgers})`
