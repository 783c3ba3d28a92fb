package catalogue

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialect"
	my "github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/dialect/mysql/sealsql"
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/setuperr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// MySQL is MySQL and MariaDB. Names that differ only in case count as equal, because a server may treat them as equal;
// see lower_case_table_names.
var MySQL = newDatabase(dialect.MySQL, Database{
	same:   strings.ToLower,
	length: func(s string) int { return len(s) }, // a name is bytes
	user:   "varchar(255)",

	silentCascades: fact.Yes,
	refusesViews:   fact.Yes,

	relations:  relationsMySQL,
	queries:    queriesMySQL,
	tableNames: func(*look) string { return mysqlTables },
	fencedNames: func(l *look) string {
		return fmt.Sprintf(mysqlFenced, l.ownSchemas("table_schema"), l.ownSchemas("event_object_schema"))
	},
	judge:     judgeMySQL,
	storage:   storageMySQL,
	session:   sessionMySQL,
	seal:      sealMySQL,
	pastSeals: "the privileges DROP (by TRUNCATE), ALTER (by EXCHANGE PARTITION or a cascade) and TRIGGER pass by it",
	alter: func(table, column, declare string) string {
		return "ALTER TABLE " + table + " MODIFY COLUMN " + column + " " + declare
	},
})

// ownSchemas is a condition on a schema. A server has databases of several programs, so without registered tables only
// the session's database and the ledger's schema from the options are checked.
func (l *look) ownSchemas(column string) string {
	condition := column + " " + my.NotTheServers
	if l.opts.Recognise {
		condition += " AND " + column + " IN (COALESCE(DATABASE(), " + column + "), " + l.db.Text(l.opts.Schema) + ")"
	}
	return condition
}

func relationsMySQL(l *look, names []string) (found []*relation) {
	rows := l.rows("the tables",
		`SELECT table_schema, table_name, table_type, COALESCE(engine, ''), CASE WHEN table_schema = DATABASE() THEN 1 ELSE 0 END
FROM information_schema.tables WHERE `+l.ownSchemas("table_schema")+` AND LOWER(table_name) IN (`+l.db.texts(names)+
			`) ORDER BY 1, 2`)
	for _, r := range rows {
		rel := &relation{id: r[0] + "." + r[1], schema: r[0], name: r[1], kind: "table", storage: r[3],
			visible: r[4] == "1", hidesTriggers: true}
		if r[2] == "VIEW" {
			rel.kind = "view"
		}
		found = append(found, rel)
	}
	l.expression = strings.Join(slices.Concat(l.rows("the indexes", mysqlExpression)...), "")
	return found
}

func queriesMySQL(l *look) []query {
	named := func(of []*relation, schema, table string) string {
		return "CONCAT(" + schema + ", '.', " + table + ") IN (" + l.ids(of) + ")"
	}
	fill := strings.NewReplacer("{not the servers}", my.NotTheServers,
		"{asked}", named(l.queried(), "table_schema", "table_name"),
		"{of}", named(l.guarded(), "table_schema", "table_name"),
		"{of s}", named(l.guarded(), "s.table_schema", "s.table_name"),
		"{asked k}", named(l.queried(), "constraint_schema", "table_name"),
		"{of t}", named(l.guarded(), "t.event_object_schema", "t.event_object_table"),
		"{ledgers}", named(l.ledgers, "event_object_schema", "event_object_table"), "{expression}", l.expression,
		"{is definer}", isDefiner).Replace
	var some []string
	for _, w := range l.codeWords() {
		some = append(some, "OR LOCATE("+l.db.Text(w)+", LOWER(code)) > 0")
	}
	unfit := my.Unfit(sqltext.LedgerTable, []my.Column{{Name: "name", Bytes: 512}, {Name: "token"}}, "name")
	return []query{
		{"the columns", fill(mysqlColumns), hearColumn},
		{"the indexes", fill(mysqlKeys), hearKey},
		{"the views", fill(mysqlViews), hearView},
		{"the foreign keys", fill(mysqlCascades), readLink},
		{"the routines, triggers and events", fill(mysqlCode) + strings.Join(some, " ") +
			" ORDER BY 1, 2", hearCode},
		{"the settings", mysqlSettings, hearSetting},
		{"the privileges", mysqlGrants, hearMySQLGrant},
		{"the seals", fill(mysqlSeals), hearSeal},
		{"the ledger's triggers", fill(mysqlLedgerTriggers), hearTrigger},
		{"the ledger", sqltext.Place(my.Text, l.opts.Schema, unfit), func(l *look, r []string) {
			for _, ledger := range l.ledgers {
				ledger.fault("unfit", r[0])
			}
		}},
	}
}

// hearMySQLGrant adds a grant's role to rel.writers if it may write, and to rel.past if it may write past a seal: with
// the privilege DROP by TRUNCATE, with ALTER by EXCHANGE PARTITION or a cascade, and with TRIGGER by dropping the
// seal's triggers. The grants of this session show whether it sees the ledger's triggers.
func hearMySQLGrant(l *look, r []string) {
	grantee, pattern, table, privilege, self := r[0], r[1], r[2], r[3], r[4]
	l.settings[ownRole] = setuperr.Account(self)
	add := func(roles *[]string) {
		if !slices.Contains(*roles, grantee) {
			*roles = append(*roles, grantee)
		}
	}
	schemas := schemasOf(pattern)
	for _, rel := range l.queried() {
		if (table != "" || !schemas.MatchString(rel.schema)) && (pattern != rel.schema || table != rel.name) {
			continue
		}
		rel.hidesTriggers = rel.hidesTriggers && privilege != "TRIGGER"
		if r[5] == "1" {
			continue // an administrator
		}
		writes := slices.Contains([]string{"INSERT", "UPDATE", "DELETE", "DROP"}, privilege)
		if writes && strings.ReplaceAll(grantee, "'", "") != self {
			add(&rel.writers)
		}
		if slices.Contains([]string{"DROP", "ALTER", "TRIGGER"}, privilege) {
			add(&rel.past)
		}
	}
}

// schemasOf returns an expression for the names of the schemas that the pattern of a GRANT matches.
func schemasOf(pattern string) *regexp.Regexp {
	wildcards := strings.NewReplacer(`\\%`, "%", `\\_`, "_", "%", ".*", "_", ".")
	return regexp.MustCompile("(?s)^" + wildcards.Replace(regexp.QuoteMeta(pattern)) + "$")
}

func judgeMySQL(role string, c column) judgement {
	const lax = " where sql_mode isn't strict"
	switch role {
	case "fence", "serial", "claim":
		what := map[string]string{"fence": "token", "serial": "version", "claim": "generation"}[role]
		switch {
		case c.typ == "bigint":
			return fine
		case c.strict && slices.Contains([]string{"int", "mediumint", "smallint", "tinyint"}, c.typ):
			return warning("a " + what + " beyond its range can't be stored, and a program" + lax +
				" stores a lower one")
		}
		return defect("a " + what + " that doesn't fit is cut or rounded in silence" + lax +
			", and an older one passes")
	case "key": // BINARY pads its values
		stores := []string{"tinyint", "smallint", "mediumint", "int", "bigint", "char", "varchar", "tinytext", "text",
			"mediumtext", "longtext", "varbinary", "uuid"}
		if !slices.Contains(stores, c.typ) || strings.Contains(c.shown, "zerofill") {
			return warning("it may store or print a value in another way than the token's name has it; a key is " +
				"an integer or a text")
		}
	case "time":
		if c.typ != "bigint" {
			return defect("the time of a lock is a bigint, of microseconds since 1970")
		}
	}
	return fine
}

func storageMySQL(l *look, rel *relation) judgement {
	if strings.EqualFold(rel.storage, "InnoDB") {
		return fine
	}
	return judgement{Fault, "is of the engine " + rel.storage + ": of a statement that is refused, the rows before " +
		"the one that refuses it stay changed",
		"Make it a table of InnoDB.", "ALTER TABLE " + l.quoted(rel) + " ENGINE = InnoDB"}
}

func sessionMySQL(l *look) {
	for i := range l.tables {
		if t := &l.tables[i]; t.Key != "" && !strings.Contains(l.settings["sql_mode"], "STRICT_") {
			l.add(t, Finding{Level: Warning, Code: "setting",
				Problem: "The session's sql_mode isn't strict: the key of a new row of table " + t.Registered +
					" may be cut in silence, and its token names another row.",
				Remedy: "Set a strict sql_mode for the program's sessions, such as by " +
					"sql_mode='STRICT_TRANS_TABLES' in its DSN.",
				SQL: "SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')"})
		}
	}
	if strings.EqualFold(l.settings["binlog_format"], "STATEMENT") {
		level := Note
		if strings.EqualFold(l.settings["log_bin"], "ON") {
			level = Warning
		}
		l.setting(level, "The setting binlog_format = STATEMENT logs guarded statements as texts, which a replica "+
			"may refuse or execute otherwise",
			"Set it to ROW or MIXED.", "SET GLOBAL binlog_format = 'ROW'")
	}
	const flush = "innodb_flush_log_at_trx_commit"
	// 2: a crash of the machine, not of the server alone
	level, loses := map[string]slog.Level{"0": Warning, "2": Note}[l.settings[flush]]
	if loses {
		l.losesCommits(level, flush+" = "+l.settings[flush], "Set it to 1, also in the server's file of settings.",
			"SET GLOBAL "+flush+" = 1")
	}
	l.idles("idle_transaction_timeout", "SET GLOBAL idle_transaction_timeout = 60")
}

// sealMySQL reads the seal of a table, which consists of three triggers. s.late has the triggers that fire after the
// seal's, because they were created later: they may change the columns that the seal has checked.
func sealMySQL(l *look, t target) (s seals, has bool) {
	table, bodies := t.sealed(), make(map[string]string)
	if ledger := l.ledgerOf(t); ledger != nil && ledger.schema != t.rel.schema {
		table.LedgerIn = ledger.schema
	}
	for _, r := range t.rel.seal {
		event, body, name, problem := strings.ToLower(r[0]), r[1], r[2], r[3]
		_, behind := bodies[event]
		switch {
		case strings.HasPrefix(name, sqltext.SealPrefix):
			bodies[event] = body
			if problem != "" && s.problem == "" {
				s.problem, s.remedy = problem, "Create the account again, or grant it what it lacks; or seal "+
					"the table as another: schema.Seal, sqlfence seal --apply."
			}
		case strings.HasPrefix(name, sqltext.SealBusy):
			has, s.problem, s.remedy = true, "Seal was interrupted, and all writes are refused until "+
				"it is run again", ""
		case event != "delete" && behind:
			s.late, s.names = append(s.late, l.db.text(body)), append(s.names, l.quoteIfNeeded(name)+" of "+t.rel.id)
		}
	}
	if len(bodies) == 0 || s.problem != "" {
		return s, has || len(bodies) > 0
	}
	compareTriggers(&s, sealsql.Triggers(table), bodies)
	return s, true
}

// compareTriggers notes a trigger that is missing, and the first trigger that Seal would create with another body.
func compareTriggers(s *seals, wanted []sealsql.Trigger, bodies map[string]string) {
	for _, want := range wanted {
		body, there := bodies[want.Event]
		switch wants, is := sealsql.Stored(want.Body), sealsql.Stored(body); {
		case !there:
			s.problem = "it has no trigger for " + strings.ToUpper(want.Event)
		case is != wants && s.shape == "":
			s.shape = differs("its trigger for "+strings.ToUpper(want.Event), wants, is)
		}
	}
}
