package verify

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// MySQL is MySQL and MariaDB. Names that differ in case alone count as the same, as a server may take
// them; see lower_case_table_names.
var MySQL Database = mysql{sqltext.MySQL}

type mysql struct{ sqltext.Dialect }

func (d mysql) placed(schema, text string) string { return sqltext.Place(d.Dialect, schema, text) }

func (mysql) same(name string) string { return strings.ToLower(name) }

func (mysql) word(s string) string { return unquoted(s) }

func (mysql) keepsLedgers() bool             { return false }
func (mysql) cascadesFire() bool             { return false }
func (mysql) writesJoined() bool             { return true }
func (mysql) setsDefaults() bool             { return true }
func (mysql) length(s string) int            { return len(s) } // a name is bytes
func (mysql) lockTypes() (user, time string) { return "varchar(255)", "bigint" }

func (mysql) alter(table, column, declare string) string {
	return "ALTER TABLE " + table + " MODIFY COLUMN " + column + " " + declare
}

func (mysql) isRowNumber(_ *relation, column string) bool { return strings.EqualFold(column, "_rowid") }

// notTheServers is a condition for a schema that is not one of the server itself.
const notTheServers = `NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')`

func (d mysql) relations(l *look, names []string) ([]*relation, error) {
	rows, err := l.rows("the tables", `SELECT table_schema, table_name, table_type, COALESCE(engine, ''), CASE WHEN table_schema = DATABASE() THEN 1 ELSE 0 END
FROM information_schema.tables WHERE table_schema `+notTheServers+` AND LOWER(table_name) IN (`+texts(d, names)+`) ORDER BY 1, 2`)
	var found []*relation
	for _, r := range rows {
		rel := &relation{id: r[0] + "." + r[1], schema: r[0], name: r[1], kind: "table", storage: r[3], visible: r[4] == "1", owned: true}
		if r[2] == "VIEW" {
			rel.kind = "view"
		}
		found = append(found, rel)
	}
	return found, err
}

// named is a condition for the relations.
func (d mysql) named(of []*relation, schema, table string) string {
	return "CONCAT(" + schema + ", '.', " + table + ") IN (" + texts(d, ids(of)) + ")"
}

// The role's privileges on a column are those on its table, too.
func (d mysql) columns(l *look, of []*relation) (map[string][]column, error) {
	rows, err := l.rows("the columns", `SELECT CONCAT(table_schema, '.', table_name), column_name, LOWER(data_type), column_type, is_nullable, COALESCE(column_default, ''),
	CASE WHEN COALESCE(generation_expression, '') <> '' THEN 1 ELSE 0 END, COALESCE(collation_name, ''), privileges,
	CASE WHEN @@SESSION.sql_mode LIKE '%STRICT\_%' THEN 1 ELSE 0 END
FROM information_schema.columns WHERE table_schema `+notTheServers+` AND `+d.named(of, "table_schema", "table_name")+` ORDER BY 1, ordinal_position`)
	found := make(map[string][]column)
	for _, r := range rows {
		may := func(privilege string) bool {
			return slices.Contains(strings.Split(strings.ToLower(r[8]), ","), privilege)
		}
		c := column{name: r[1], typ: r[2], shown: r[3], nullable: r[4] == "YES", fallback: r[5], generated: r[6] == "1", computed: r[6] == "1", reads: may("select"), inserts: may("insert"), updates: may("update")}
		c.strict = r[9] == "1"
		c.loose = r[7] != "" && !strings.HasSuffix(r[7], "_bin") && r[7] != "binary"
		found[r[0]] = append(found[r[0]], c)
		for _, rel := range of {
			if rel.id == r[0] {
				rel.writes = rel.writes || c.inserts || c.updates
			}
		}
	}
	return found, err
}

func (d mysql) similar(l *look) ([]string, error) {
	rows, err := l.rows("the tables", `SELECT DISTINCT table_name FROM information_schema.tables WHERE table_schema `+notTheServers+` AND table_type <> 'VIEW' ORDER BY 1`)
	return first(rows), err
}

func (mysql) mark(c column) judgement {
	switch {
	case c.typ == "bigint":
		return fine
	case c.isNarrow() && c.strict:
		return warning("a token beyond its range can't be stored, and a program where sql_mode isn't strict stores a lower one")
	}
	return fault("a token that doesn't fit is cut or rounded in silence where sql_mode isn't strict, and an older one passes")
}

func (mysql) serial(c column) judgement {
	switch {
	case c.typ == "bigint":
		return fine
	case c.isNarrow() && c.strict:
		return warning("a version beyond its range can't be stored, and a program where sql_mode isn't strict stores a lower one")
	}
	return fault("a number that doesn't fit is cut or rounded in silence where sql_mode isn't strict")
}

// isNarrow reports whether a column holds integers, and not all of them.
func (c *column) isNarrow() bool {
	return slices.Contains([]string{"int", "mediumint", "smallint", "tinyint"}, c.typ)
}

func (mysql) key(c column) judgement {
	switch c.typ { // BINARY pads its values
	case "tinyint", "smallint", "mediumint", "int", "bigint", "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "varbinary", "uuid":
		if !strings.Contains(c.shown, "zerofill") {
			return fine
		}
	}
	return warning("it may store or print a value in another way than the token's name has it; a key is an integer or a text")
}

func (mysql) lock(c column, time bool) judgement {
	if time && c.typ != "bigint" {
		return fault("the time of a lock is a bigint, of microseconds since 1970")
	}
	return fine
}

func (mysql) storage(l *look, rel *relation) judgement {
	if strings.EqualFold(rel.storage, "InnoDB") {
		return fine
	}
	return judgement{Fault, "is of the engine " + rel.storage + ": of a statement that is refused, the rows before the one that refuses it stay changed",
		"Make it a table of InnoDB.", "ALTER TABLE " + l.quoted(rel) + " ENGINE = InnoDB"}
}

func (d mysql) unfit(l *look, _ *relation) (string, error) {
	rows, err := l.rows("the ledger", d.placed(l.opts.Schema, sqltext.Unfit(sqltext.LedgerTable, []sqltext.Kept{{Name: "name", Bytes: 512}, {Name: "token"}}, "name")))
	return strings.Join(first(rows), ""), err
}

func (mysql) otherFunction(*look, *relation) (string, error) { return "", nil }

// unkept: who hasn't the privilege TRIGGER doesn't see the triggers.
func (d mysql) unkept(l *look, ledger *relation) (string, error) {
	on := []*relation{ledger}
	rows, err := l.rows("the ledger's triggers", `SELECT trigger_name, action_statement FROM information_schema.triggers
WHERE `+d.named(on, "event_object_schema", "event_object_table"))
	if err != nil {
		return "", err
	}
	if len(rows) == 0 {
		seen, err := d.seesTriggers(l, ledger)
		if err != nil || !seen {
			return "", err
		}
	}
	wrong := wrongTriggers(d.LedgerTriggers(), rows)
	cascades, err := d.cascades(l, on)
	for _, c := range cascades { // which fires no trigger
		if wrong != "" {
			wrong += ", "
		}
		wrong += "a foreign key is declared " + c.detail + ", so that a write to " + l.spell(c.schema, c.name) + " changes its names or deletes them"
	}
	return wrong, err
}

// seesTriggers reports whether the role sees the triggers of a table, and notes it if not.
func (d mysql) seesTriggers(l *look, of *relation) (bool, error) {
	rows, err := l.rows("the privileges", `SELECT '%' FROM information_schema.user_privileges WHERE privilege_type = 'TRIGGER'
UNION SELECT table_schema FROM information_schema.schema_privileges WHERE privilege_type = 'TRIGGER'
UNION SELECT '%' FROM information_schema.table_privileges WHERE privilege_type = 'TRIGGER' AND `+d.named([]*relation{of}, "table_schema", "table_name"))
	sees := slices.ContainsFunc(first(rows), func(pattern string) bool { return matchesPattern(pattern, of.schema) })
	if err == nil && !sees {
		l.unseen("the triggers that keep tokens from falling", "that takes the privilege TRIGGER")
	}
	return sees, err
}

func (d mysql) settings(l *look) (map[string]string, error) {
	rows, err := l.rows("the settings", `SHOW VARIABLES WHERE Variable_name IN ('sql_mode', 'binlog_format', 'log_bin', 'innodb_flush_log_at_trx_commit', 'idle_transaction_timeout')`)
	return pairs(rows), err
}

func (mysql) checkSession(l *look, settings map[string]string) {
	for i := range l.tables {
		if t := &l.tables[i]; t.Key != "" && !strings.Contains(settings["sql_mode"], "STRICT_") {
			l.add(t, Finding{
				Severity: Warning, Code: "sql-mode",
				Problem: "The session's sql_mode isn't strict: the key of a new row of table " + t.Registered + " may be cut in silence, and its token names another row.",
				Remedy:  "Set a strict sql_mode for the program's sessions, such as by sql_mode='STRICT_TRANS_TABLES' in its DSN.",
				SQL:     "SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')",
			})
		}
	}
	if strings.EqualFold(settings["binlog_format"], "STATEMENT") {
		severity := Note
		if strings.EqualFold(settings["log_bin"], "ON") {
			severity = Warning
		}
		l.add(nil, Finding{Severity: severity, Code: "binlog-format",
			Problem: "The setting binlog_format = STATEMENT logs guarded statements as texts, which a replica may refuse or execute otherwise.",
			Remedy:  "Set it to ROW or MIXED.", SQL: "SET GLOBAL binlog_format = 'ROW'"})
	}
	if level := settings["innodb_flush_log_at_trx_commit"]; level == "0" || level == "2" {
		severity := Note // a crash of the machine, not of the server alone
		if level == "0" {
			severity = Warning
		}
		l.durability(severity, "innodb_flush_log_at_trx_commit = "+level, "Set it to 1, also in the server's file of settings.", "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	}
	if settings["idle_transaction_timeout"] == "0" && l.asksLedger() {
		l.idle("idle_transaction_timeout", "SET GLOBAL idle_transaction_timeout = 60")
	}
}

func (d mysql) links(l *look, of []*relation) ([]link, error) {
	views, err := d.views(l, of)
	if err != nil {
		return nil, err
	}
	cascades, err := d.cascades(l, of)
	return append(views, cascades...), err
}

// cascades returns the links by which a write to another table changes or deletes rows.
func (d mysql) cascades(l *look, of []*relation) (all []link, err error) {
	rows, err := l.rows("the foreign keys", `SELECT CONCAT(constraint_schema, '.', table_name), unique_constraint_schema, referenced_table_name, update_rule, delete_rule
FROM information_schema.referential_constraints WHERE `+d.named(of, "constraint_schema", "table_name")+` AND (update_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR delete_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT'))
ORDER BY 1, 2, 3, constraint_name`)
	for _, r := range rows {
		all = append(all, link{"cascade", r[0], r[1], r[2], actions(r[3], r[4])})
	}
	return all, err
}

// actions writes what a foreign key does on UPDATE and DELETE.
func actions(update, del string) string {
	var said []string
	for _, rule := range [][2]string{{"ON UPDATE ", update}, {"ON DELETE ", del}} {
		if rule[1] != "NO ACTION" && rule[1] != "RESTRICT" {
			said = append(said, rule[0]+rule[1])
		}
	}
	return strings.Join(said, " ")
}

// A view's definition is empty for who may not see it.
func (d mysql) views(l *look, of []*relation) ([]link, error) {
	rows, err := l.rows("the views", `SELECT table_schema, table_name, view_definition FROM information_schema.views WHERE is_updatable = 'YES' AND table_schema `+notTheServers+` ORDER BY 1, 2`)
	var views []view
	hidden := 0
	for _, r := range rows {
		if r[2] == "" {
			hidden++
		}
		views = append(views, view{r[0], r[1], r[2]})
	}
	if hidden > 0 {
		l.unseen("what some views select", strconv.Itoa(hidden)+" of them")
	}
	return writableViews(d, views, of), err
}

func (d mysql) code(l *look, words []string) ([]code, error) {
	like := make([]string, len(words))
	for i, w := range words {
		like[i] = "LOCATE(" + d.Text(w) + ", LOWER(body)) > 0"
	}
	rows, err := l.rows("the routines, triggers and events", `SELECT kind, CASE WHEN home = DATABASE() OR kind = 'trigger' THEN bare ELSE CONCAT(home, '.', bare) END, fires, shown, COALESCE(body, ''), CASE WHEN body IS NULL THEN 1 ELSE 0 END, bare, home FROM (
	SELECT LOWER(routine_type) AS kind, routine_schema AS home, routine_name AS bare, '' AS fires, '' AS shown, routine_definition AS body FROM information_schema.routines WHERE routine_schema `+notTheServers+`
	UNION ALL SELECT 'trigger', trigger_schema, trigger_name, CONCAT(event_object_schema, '.', event_object_table), event_object_table, action_statement
		FROM information_schema.triggers WHERE trigger_schema `+notTheServers+`
	UNION ALL SELECT 'event', event_schema, event_name, '', '', event_definition FROM information_schema.events WHERE event_schema `+notTheServers+`) AS x
WHERE body IS NULL OR `+strings.Join(like, " OR ")+` ORDER BY 1, 2`)
	var found []code
	for _, r := range rows {
		found = append(found, code{kind: r[0], name: r[1], fires: []string{r[2]}, on: r[3], body: r[4], hidden: r[5] == "1", bare: r[6], home: r[7]})
	}
	return found, err
}

func (d mysql) writers(l *look, of []*relation) (map[string][]string, error) {
	granted, self, err := d.granted(l, of, "'INSERT', 'UPDATE', 'DELETE', 'DROP'")
	for id, roles := range granted {
		granted[id] = slices.DeleteFunc(roles, func(role string) bool { return role == self })
	}
	return granted, err
}

// granted returns who has one of the privileges on relations, and how this role is called there.
//
// A role sees the privileges of others if it may read the tables of the schema mysql. Who has a
// privilege on all tables is an administrator.
//
// The query has no constant with a quote in it: under NO_BACKSLASH_ESCAPES MySQL can't read the
// catalogue's views with one.
func (d mysql) granted(l *look, of []*relation, privileges string) (found map[string][]string, self string, err error) {
	found = make(map[string][]string)
	rows, err := l.rows("the privileges", `SELECT DISTINCT grantee, table_schema, table_name, CURRENT_USER() FROM (
	SELECT grantee, table_schema, '' AS table_name, privilege_type FROM information_schema.schema_privileges
	UNION ALL SELECT grantee, table_schema, table_name, privilege_type FROM information_schema.table_privileges
	UNION ALL SELECT grantee, table_schema, table_name, privilege_type FROM information_schema.column_privileges) AS x
WHERE privilege_type IN (`+privileges+`) ORDER BY 1, 2, 3`)
	for _, r := range rows {
		if strings.ReplaceAll(r[0], "'", "") == r[3] {
			self = r[0]
		}
		for _, rel := range of {
			if (r[2] == "" && matchesPattern(r[1], rel.schema) || r[1] == rel.schema && r[2] == rel.name) && !slices.Contains(found[rel.id], r[0]) {
				found[rel.id] = append(found[rel.id], r[0])
			}
		}
	}
	return found, self, err
}

// matchesPattern reports whether a name of a schema matches the pattern of a GRANT.
func matchesPattern(pattern, name string) bool {
	switch {
	case pattern == "":
		return name == ""
	case pattern[0] == '%':
		return matchesPattern(pattern[1:], name) || name != "" && matchesPattern(pattern, name[1:])
	case name == "":
		return false
	case pattern[0] == '\\' && len(pattern) > 1:
		return pattern[1] == name[0] && matchesPattern(pattern[2:], name[1:])
	}
	return (pattern[0] == '_' || pattern[0] == name[0]) && matchesPattern(pattern[1:], name[1:])
}
