package verify

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Postgres is PostgreSQL.
var Postgres Database = postgres{sqltext.Postgres}

type postgres struct{ sqltext.Dialect }

func (d postgres) placed(schema, text string) string { return sqltext.Place(d.Dialect, schema, text) }

func (postgres) same(name string) string { return name }

func (postgres) word(s string) string {
	if quoted, ok := strings.CutPrefix(s, `"`); ok {
		return strings.ReplaceAll(strings.TrimSuffix(quoted, `"`), `""`, `"`)
	}
	return strings.ToLower(s)
}

func (postgres) keepsLedgers() bool                       { return false }
func (postgres) cascadesFire() bool                       { return true }
func (postgres) writesJoined() bool                       { return false }
func (postgres) setsDefaults() bool                       { return true }
func (postgres) length(s string) int                      { return utf8.RuneCountInString(s) }
func (postgres) lockTypes() (user, time string)           { return "text", "timestamptz" }
func (postgres) isRowNumber(rel *relation, _ string) bool { return false }

func (postgres) alter(table, column, declare string) string {
	typ, _, _ := strings.Cut(declare, " ")
	return "ALTER TABLE " + table + " ALTER COLUMN " + column + " TYPE " + typ + " USING " + column + "::" + typ
}

// Another session's temporary tables are nobody's else.
const postgresRelations = `SELECT c.oid::pg_catalog.text, n.nspname::pg_catalog.text, c.relname::pg_catalog.text,
	pg_catalog.pg_table_is_visible(c.oid)::pg_catalog.text, c.relkind::pg_catalog.text, c.relpersistence::pg_catalog.text,
	(pg_catalog.has_any_column_privilege(c.oid, 'INSERT') OR pg_catalog.has_any_column_privilege(c.oid, 'UPDATE'))::pg_catalog.text,
	pg_catalog.has_table_privilege(c.oid, 'DELETE')::pg_catalog.text,
	pg_catalog.pg_has_role(c.relowner, 'USAGE')::pg_catalog.text
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
	AND (NOT pg_catalog.starts_with(n.nspname::pg_catalog.text, 'pg_temp_') OR n.oid = pg_catalog.pg_my_temp_schema()) AND c.relname IN (`

func (d postgres) relations(l *look, names []string) ([]*relation, error) {
	kinds := map[string]string{"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view", "f": "foreign table"}
	storages := map[string]string{"u": "unlogged", "t": "temporary"}
	rows, err := l.rows("the tables", postgresRelations+texts(d, names)+") ORDER BY 2, 3")
	var found []*relation
	for _, r := range rows {
		found = append(found, &relation{id: r[0], schema: r[1], name: r[2], visible: r[3] == "true", kind: kinds[r[4]], storage: storages[r[5]],
			writes: r[6] == "true", deletes: r[7] == "true", owned: r[8] == "true"})
	}
	return found, err
}

// A domain's type is that at the end of its bases.
const postgresColumns = `SELECT a.attrelid::pg_catalog.text, a.attname::pg_catalog.text,
	(WITH RECURSIVE b(oid, base) AS (
		SELECT t.oid, t.typbasetype FROM pg_catalog.pg_type AS t WHERE t.oid = a.atttypid
		UNION ALL SELECT t.oid, t.typbasetype FROM pg_catalog.pg_type AS t JOIN b ON t.oid = b.base)
	SELECT t.typname::pg_catalog.text FROM b JOIN pg_catalog.pg_type AS t ON t.oid = b.oid WHERE b.base = 0),
	pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull::pg_catalog.text,
	COALESCE(pg_catalog.pg_get_expr(d.adbin, d.adrelid), ''), CASE WHEN a.attgenerated <> '' THEN 'computed' WHEN a.attidentity = 'a' THEN 'identity' ELSE '' END,
	COALESCE((NOT o.collisdeterministic)::pg_catalog.text, ''),
	pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT')::pg_catalog.text,
	pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'INSERT')::pg_catalog.text,
	pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'UPDATE')::pg_catalog.text
FROM pg_catalog.pg_attribute AS a
LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_catalog.pg_collation AS o ON o.oid = a.attcollation
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid IN (`

func (d postgres) columns(l *look, of []*relation) (map[string][]column, error) {
	rows, err := l.rows("the columns", postgresColumns+strings.Join(ids(of), ", ")+") ORDER BY a.attrelid, a.attnum")
	found := make(map[string][]column)
	for _, r := range rows {
		found[r[0]] = append(found[r[0]], column{name: r[1], typ: r[2], shown: r[3], nullable: r[4] != "true", fallback: r[5], generated: r[6] != "", computed: r[6] == "computed",
			loose: r[7] == "true" || r[2] == "citext", reads: r[8] == "true", inserts: r[9] == "true", updates: r[10] == "true"})
	}
	return found, err
}

func (d postgres) similar(l *look) ([]string, error) {
	rows, err := l.rows("the tables", `SELECT c.relname::pg_catalog.text FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND NOT pg_catalog.starts_with(n.nspname::pg_catalog.text, 'pg_') ORDER BY 1`)
	return first(rows), err
}

func (postgres) mark(c column) judgement {
	switch c.typ {
	case "int8":
		return fine
	case "int4", "int2":
		return warning("a token beyond its range can't be stored, and after a failover or a restore all are")
	}
	return fault("the guard compares integers, so that every write is refused")
}

func (d postgres) serial(c column) judgement {
	if c.typ == "int4" || c.typ == "int2" {
		return fine
	}
	return d.mark(c)
}

func (postgres) key(c column) judgement {
	switch {
	case c.loose:
		return warning("texts that aren't the same count as equal, so that one row may have several tokens")
	case slices.Contains([]string{"int2", "int4", "int8", "text", "varchar", "uuid"}, c.typ):
		return fine
	}
	return warning("it may store or print a value in another way than the token's name has it; a key is an integer, a text or a UUID")
}

func (postgres) lock(c column, time bool) judgement {
	switch {
	case time && c.typ != "timestamptz":
		return fault("the time of a lock is a timestamptz")
	case !time && !slices.Contains([]string{"text", "varchar", "int2", "int4", "int8", "uuid"}, c.typ):
		return warning("the holder of a lock is a text or an integer")
	}
	return fine
}

func (postgres) storage(l *look, rel *relation) judgement {
	switch rel.storage {
	case "unlogged":
		return judgement{Warning, "is UNLOGGED: a crash of the server empties it, and its marks are gone", "Make it an ordinary table.",
			"ALTER TABLE " + l.quoted(rel) + " SET LOGGED"}
	case "temporary":
		return judgement{Warning, "is a temporary one of this session: others have another table by the name", "Register it with its schema, or name the temporary table otherwise.", ""}
	}
	return fine
}

// What makes tokens of one name come twice: [sqltext.CreateLedgerFunction] wants the same.
const postgresUnfit = `SELECT CASE
	WHEN c.relkind <> 'r' THEN 'it is not an ordinary table'
	WHEN c.relpersistence = 'u' THEN 'it is UNLOGGED, so that a crash of the server empties it, and tokens begin again at 1'
	WHEN c.relpersistence = 't' THEN 'it is a temporary table of this session'
	WHEN NOT EXISTS (SELECT FROM pg_catalog.pg_index AS i
		JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
		WHERE i.indrelid = c.oid AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indnkeyatts = 1 AND i.indpred IS NULL AND a.attname = 'name')
		THEN 'its column name is not unique'
END FROM pg_catalog.pg_class AS c WHERE c.oid = `

func (postgres) unfit(l *look, ledger *relation) (string, error) {
	rows, err := l.rows("the ledger", postgresUnfit+ledger.id)
	return strings.Join(first(rows), ""), err
}

const postgresUnkept = `SELECT w.name || CASE WHEN g.oid IS NULL THEN ' is missing' WHEN g.tgenabled <> 'A' THEN ' isn''t ENABLE ALWAYS' ELSE ' isn''t what Setup creates' END
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN (VALUES ('` + sqltext.LedgerTrigger + `'), ('` + sqltext.LedgerTruncateTrigger + `')) AS w (name)
LEFT JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = c.oid AND g.tgname = w.name
WHERE ({created}) IS NOT TRUE AND c.oid = {ledger} ORDER BY 1`

func (postgres) unkept(l *look, ledger *relation) (string, error) {
	rows, err := l.rows("the ledger's triggers", strings.NewReplacer("{created}", sqltext.LedgerTriggerAsCreated, "{ledger}", ledger.id).Replace(postgresUnkept))
	wrong := first(rows)
	for i := range wrong {
		wrong[i] = "the trigger " + wrong[i]
	}
	return strings.Join(wrong, ", "), err
}

const postgresOtherFunction = `SELECT p.proname::pg_catalog.text
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace JOIN pg_catalog.pg_proc AS p ON {named}
WHERE ({created}) IS NOT TRUE AND c.oid = {ledger}`

func (postgres) otherFunction(l *look, ledger *relation) (string, error) {
	rows, err := l.rows("the ledger's function",
		strings.NewReplacer("{named}", sqltext.LedgerFunctionIsNamed, "{created}", sqltext.LedgerFunctionAsCreated, "{ledger}", ledger.id).Replace(postgresOtherFunction))
	return strings.Join(first(rows), ""), err
}

// The last one isn't a setting: who has that of a replica, in whatever session.
const postgresSettings = `SELECT name, setting FROM pg_catalog.pg_settings WHERE name IN ('synchronous_commit', 'fsync', 'idle_in_transaction_session_timeout', 'session_replication_role')
UNION ALL SELECT '` + replicas + `', COALESCE(pg_catalog.string_agg(x.name, ', ' ORDER BY x.name), '') FROM (
	SELECT CASE s.setrole WHEN 0 THEN 'every role of a database' ELSE 'role ' || pg_catalog.pg_get_userbyid(s.setrole) END AS name, s.setconfig AS config FROM pg_catalog.pg_db_role_setting AS s
	WHERE s.setdatabase IN (0, (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database()))
	UNION ALL SELECT 'function ' || p.oid::pg_catalog.regproc::text, p.proconfig FROM pg_catalog.pg_proc AS p WHERE p.proconfig IS NOT NULL) AS x
WHERE EXISTS (SELECT FROM pg_catalog.unnest(x.config) AS c WHERE pg_catalog.lower(c) = 'session_replication_role=replica')`

const replicas = "sqlfence: replicas"

func (d postgres) settings(l *look) (map[string]string, error) {
	rows, err := l.rows("the settings", postgresSettings)
	return pairs(rows), err
}

func (postgres) checkSession(l *look, settings map[string]string) {
	if settings["synchronous_commit"] == "off" {
		l.durability(Warning, "synchronous_commit = off", "Turn it on for the roles that write under tokens.", "SET synchronous_commit = on")
	}
	if settings["fsync"] == "off" { // a crash of the machine, not of the server alone
		l.durability(Note, "fsync = off", "Turn it on for the server.", "ALTER SYSTEM SET fsync = on")
	}
	if slices.ContainsFunc(l.tables, func(t Table) bool { return t.Sealed }) {
		const remedy = "Leave it at origin, but for a replication or a restore of what was fenced."
		if settings["session_replication_role"] == "replica" {
			l.add(nil, Finding{Severity: Warning, Code: "replication-role",
				Problem: "The session's setting session_replication_role = replica switches off foreign keys and all triggers but those of seals and of the ledger.",
				Remedy:  remedy, SQL: "SET session_replication_role = origin"})
		}
		if who := settings[replicas]; who != "" {
			l.add(nil, Finding{Severity: Warning, Code: "replication-role",
				Problem: "The setting session_replication_role = replica, which switches off foreign keys and all triggers but those of seals and of the ledger, is that of " + who + ".", Remedy: remedy})
		}
	}
	if settings["idle_in_transaction_session_timeout"] == "0" && l.asksLedger() {
		l.idle("idle_in_transaction_session_timeout", "ALTER ROLE CURRENT_USER SET idle_in_transaction_session_timeout = '1min'")
	}
}

// postgresGrantees are those who have one of some privileges on relations, and their owners. Superusers may do
// anything anyway.
const postgresGrantees = `SELECT DISTINCT c.oid::pg_catalog.text, COALESCE(r.rolname::pg_catalog.text, 'PUBLIC')
FROM pg_catalog.pg_class AS c
CROSS JOIN LATERAL (
	SELECT x.grantee, x.privilege_type FROM pg_catalog.aclexplode(c.relacl) AS x
	UNION ALL SELECT x.grantee, x.privilege_type FROM pg_catalog.pg_attribute AS a CROSS JOIN LATERAL pg_catalog.aclexplode(a.attacl) AS x WHERE a.attrelid = c.oid
	UNION ALL SELECT c.relowner, NULL) AS g
LEFT JOIN pg_catalog.pg_roles AS r ON r.oid = g.grantee
WHERE NOT COALESCE(r.rolsuper, false) AND (r.rolname IS NULL OR r.rolname <> CURRENT_USER) AND (g.privilege_type IS NULL OR g.privilege_type IN (`

func (d postgres) writers(l *look, of []*relation) (map[string][]string, error) {
	return d.granted(l, of, "'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE'")
}

func (postgres) granted(l *look, of []*relation, privileges string) (map[string][]string, error) {
	rows, err := l.rows("the privileges", postgresGrantees+privileges+")) AND c.oid IN ("+strings.Join(ids(of), ", ")+") ORDER BY 1, 2")
	found := make(map[string][]string)
	for _, r := range rows {
		found[r[0]] = append(found[r[0]], r[1])
	}
	return found, err
}

func (d postgres) unsealers(l *look, of []*relation) (map[string][]string, string, error) {
	granted, err := d.granted(l, of, "'TRIGGER'")
	return granted, "its owner may switch the triggers off, and the privilege TRIGGER creates others behind them", err
}

// first returns the first column of rows.
func first(rows [][]string) []string {
	list := make([]string, len(rows))
	for i, r := range rows {
		list[i] = r[0]
	}
	return list
}

// pairs returns rows of names and values, by the names in lower case.
func pairs(rows [][]string) map[string]string {
	found := make(map[string]string, len(rows))
	for _, r := range rows {
		found[strings.ToLower(r[0])] = r[1]
	}
	return found
}
