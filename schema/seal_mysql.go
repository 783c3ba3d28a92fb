package schema

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialect/mysql/sealsql"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/seal"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// sealMySQL seals by row triggers, because MySQL has no statement triggers. A table that was unsealed keeps two
// triggers that refuse the negative tokens that writes present to a seal (see [Unseal]). A constraint could refuse them
// too, but adding a constraint would copy the table, and a statement with IGNORE would skip the refused rows without an
// error. While the triggers are changed, the table is locked, so that writers find all of the triggers, or none.
var sealMySQL = sealer{seal: sealing.sealMySQL, unseal: sealing.unsealMySQL, lookAround: lookAroundMySQL}

// sealMySQL drops the table's existing seal, and creates the triggers one by one. Meanwhile other triggers refuse all
// writes, because an incomplete seal could let a negative stored token in. If Seal is interrupted, the refusing
// triggers stay until the next Seal.
func (s sealing) sealMySQL() []string {
	shut, open := s.busy()
	var lift []string
	if s.negative { // existing triggers have let negative tokens in, and may refuse to make them positive
		lift = append(slices.Clone(open), s.drop()...)
		lift = append(lift, "UPDATE "+s.table+" SET "+s.column+" = -"+s.column+" WHERE "+s.column+" < 0")
		s.found = nil
		shut, _ = s.busy()
	}
	triggers := sealsql.Triggers(s.sealed())
	return s.locked(slices.Concat(s.try(triggers), lift, shut, s.drop(), s.create(sqltext.SealPrefix, triggers), open))
}

// unsealMySQL replaces the seal's triggers by triggers that refuse negative tokens: a write that presents its token to
// the seal then fails. Meanwhile other triggers refuse all writes, because an incomplete seal could let a negative
// stored token in.
func (s sealing) unsealMySQL() []string {
	shut, open := s.busy()
	triggers := sealsql.OpenTriggers(s.sealed())
	return s.locked(slices.Concat(s.try(triggers), shut, s.drop(), s.create(sqltext.OpenPrefix, triggers), open))
}

func lookAroundMySQL(ctx context.Context, db *sql.DB, s *sealing, seals bool) (err error) {
	ask := func(query string) (texts []string) {
		if err == nil {
			texts, err = dialectopt.Texts(ctx, db, sqltext.Whole(s.text, query))
		}
		return texts
	}
	if seals {
		if obstacles := ask(obstaclesMySQL(s)); len(obstacles) > 0 {
			return errors.New("it can't be sealed: " + obstacles[0])
		}
	}
	s.found, s.taken = ask(s.sealTriggers("=")), ask(s.sealTriggers("<>"))
	if !seals {
		return err
	}
	// A negative stored token (see [Unseal]) was written while the table lacked triggers, for example after a migration
	// had recreated the table. Its absolute value counts.
	s.negative = len(ask("SELECT 1 FROM "+s.table+" WHERE "+s.column+" < 0 LIMIT 1")) > 0
	if s.Rules.Ledger {
		found := ask(ledgerMySQL(s))
		if err == nil && len(found) == 0 {
			return errors.New("there is no table " + sqltext.LedgerTable + " in the session's database to compare " +
				"its tokens with")
		}
		s.ledgerIn = strings.Join(found, "")
	}
	return err
}

// obstaclesMySQL is a query for the obstacles to a seal, one text a row: a cascade fires no triggers, and only a signed
// bigint can store a negative token. The query reports a missing fence column because the server's error wouldn't name
// AddFence.
func obstaclesMySQL(s *sealing) string {
	what, types, adds := "fence column is", "bigint", "; schema.AddFence or sqlfence add-fence adds it"
	if s.Rules.Claim != "" {
		what, types, adds = "claim is", "bigint', 'int', 'mediumint', 'smallint", ""
	}
	return strings.NewReplacer("{home}", s.schemaName(), "{table}", s.text.Text(s.name),
		"{column}", s.text.Text(s.stored), "{what}", what, "{types}", types, "{adds}", adds).Replace(
		`SELECT CONCAT(_utf8mb4'its foreign key ', constraint_name, _utf8mb4' changes or deletes rows by a cascade, which no trigger sees; declare it RESTRICT')
FROM information_schema.referential_constraints WHERE constraint_schema = {home} AND table_name = {table}
	AND (delete_rule NOT IN ('RESTRICT', 'NO ACTION') OR update_rule NOT IN ('RESTRICT', 'NO ACTION'))
UNION ALL SELECT CONCAT(_utf8mb4'its {what} ', column_type, _utf8mb4', want bigint')
FROM information_schema.columns WHERE table_schema = {home} AND table_name = {table} AND column_name = {column}
	AND (data_type NOT IN ('{types}') OR column_type LIKE '%unsigned%')
UNION ALL SELECT CONCAT(_utf8mb4'it has no column ', {column}, _utf8mb4'{adds}')
FROM information_schema.tables WHERE table_schema = {home} AND table_name = {table}
	AND NOT EXISTS (SELECT 1 FROM information_schema.columns AS c WHERE c.table_schema = {home} ` +
			`AND c.table_name = {table} AND c.column_name = {column})
UNION ALL SELECT CONCAT(_utf8mb4'it is a table of the engine ', engine, _utf8mb4', want InnoDB')
FROM information_schema.tables WHERE table_schema = {home} AND table_name = {table} AND engine <> 'InnoDB'`)
}

// locked returns the statements under an exclusive table lock, for which they wait a second at most. They create the
// triggers under a fixed sql_mode, because a trigger runs for every writer in the sql_mode in which it was created:
// under HIGH_NOT_PRECEDENCE its comparisons would change their meaning, and under ORACLE the server couldn't parse it.
func (s sealing) locked(statements []string) []string {
	all := append([]string{
		"SET @sqlfence_lock_wait_timeout = @@SESSION.lock_wait_timeout",
		"SET SESSION lock_wait_timeout = 1",
		"SET @sqlfence_sql_mode = @@SESSION.sql_mode",
		"SET SESSION sql_mode = 'STRICT_TRANS_TABLES'",
		"LOCK TABLES " + s.table + " WRITE",
	}, statements...)
	return append(all, "UNLOCK TABLES", "SET SESSION sql_mode = @sqlfence_sql_mode", "SET SESSION lock_wait_timeout "+
		"= @sqlfence_lock_wait_timeout")
}

// trigger returns a trigger name that is unique in the table's schema. The plain name may be taken by another table
// that had this table's name before, or that has a name which differs only in case.
func (s sealing) trigger(prefix, kind string) string {
	name := seal.Own(prefix+kind+":", s.tokenTable)
	for slices.ContainsFunc(s.taken, func(other string) bool { return strings.EqualFold(other, name) }) {
		name += "~"
	}
	return s.of(name)
}

// of returns a name in the table's schema, quoted.
func (s sealing) of(name string) string {
	quoted := s.text.Quote(name)
	if s.schema != "" {
		return s.text.Quote(s.schema) + "." + quoted
	}
	return quoted
}

// sealTriggers is a query for the table's seal triggers, including triggers from a former name; with <> it finds the
// seal triggers of the other tables in the schema.
func (s sealing) sealTriggers(comparison string) string {
	text := s.text.Text
	return "SELECT trigger_name FROM information_schema.triggers WHERE event_object_schema = " + s.schemaName() +
		" AND event_object_table " + comparison + " " + text(s.name) + " AND (trigger_name LIKE " +
		text(sqltext.SealPrefix+"%") + " OR trigger_name LIKE " + text(sqltext.OpenPrefix+"%") + ")"
}

// ledgerMySQL is a query for the database with the ledger that the session's guards read; an empty text if it is the
// database of the table.
func ledgerMySQL(s *sealing) string {
	where := "DATABASE()"
	if s.own != "" {
		where = s.text.Text(s.own)
	}
	return "SELECT CASE WHEN CAST(table_schema AS BINARY) = CAST(" + s.schemaName() +
		" AS BINARY) THEN _utf8mb4 X'' ELSE " +
		"table_schema END FROM information_schema.tables WHERE table_schema = " + where +
		" AND table_name = " + s.text.Text(sqltext.LedgerTable)
}

// schemaName returns an SQL expression for the name of the table's schema.
func (s sealing) schemaName() string {
	if s.schema != "" {
		return s.text.Text(s.schema)
	}
	return "DATABASE()"
}

// busy returns statements between which all writes are refused.
func (s sealing) busy() (on, off []string) {
	for _, event := range []string{"insert", "update", "delete"} {
		name := s.trigger(sqltext.SealBusy, event)
		if !slices.ContainsFunc(s.found, func(found string) bool { return s.of(found) == name }) {
			on = append(on, s.named(name, event, "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = "+s.text.Text(
				"sqlfence: table "+s.tokenTable+" refuses all writes, as its seal was interrupted (call Seal again)")))
		}
		off = append(off, "DROP TRIGGER IF EXISTS "+name) // another Seal may have done so
	}
	return on, off
}

// try creates each trigger under another name, with a body that does nothing in case the trigger stays, and drops it.
// try runs before the old triggers are dropped, because a dropped trigger can't be restored: the role may be allowed to
// drop triggers but not to create them, or the column may be missing.
func (s sealing) try(triggers []sealsql.Trigger) (statements []string) {
	name := s.trigger(sqltext.OpenPrefix, "try")
	for _, t := range triggers {
		statements = append(statements, "DROP TRIGGER IF EXISTS "+name,
			s.named(name, t.Event, "IF FALSE THEN\n"+t.Body+";\nEND IF"), "DROP TRIGGER "+name)
	}
	return statements
}

// drop drops all seal triggers of the table, except the triggers that refuse all writes.
func (s sealing) drop() (statements []string) {
	for _, prefix := range []string{sqltext.OpenPrefix, sqltext.SealPrefix} {
		for _, name := range s.found {
			if strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, sqltext.SealBusy) {
				statements = append(statements, "DROP TRIGGER IF EXISTS "+s.of(name))
			}
		}
		for _, event := range []string{"insert", "update", "delete"} {
			if event != "delete" || prefix == sqltext.SealPrefix {
				statements = append(statements, "DROP TRIGGER IF EXISTS "+s.trigger(prefix, event))
			}
		}
	}
	return statements
}

func (s sealing) create(prefix string, triggers []sealsql.Trigger) (statements []string) {
	for _, t := range triggers {
		statements = append(statements, s.named(s.trigger(prefix, t.Event), t.Event, t.Body))
	}
	return statements
}

func (s sealing) named(name, event, body string) string {
	return "CREATE TRIGGER " + name + " BEFORE " + strings.ToUpper(event) + " ON " + s.table + " FOR EACH ROW\n" + body
}
