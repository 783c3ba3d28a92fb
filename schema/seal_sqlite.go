package schema

import (
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// sealSQLite seals by triggers of rows. SQLite has no state of a statement that a trigger could
// read, and a BEFORE trigger can't change the new row. So BEFORE triggers refuse what isn't
// proved by a negative mark, and AFTER triggers make the mark positive. A DELETE has no new row:
// it is an UPDATE that marks the row as one to be deleted, which a trigger does then.
type sealSQLite struct{}

// seal returns the statements for a table that is as most are.
func (sealSQLite) seal(s sealing) []string {
	t := newSQLiteSeal(s)
	t.rowNumber, t.writesAgain = "rowid", true
	for _, columns := range s.unique {
		var u sqliteUnique
		for _, name := range columns {
			u.columns = append(u.columns, sqliteColumn{name: name})
		}
		t.indexes = append(t.indexes, u)
	}
	return append(t.dropAll(), t.seal()...)
}

func (sealSQLite) unseal(s sealing) []string {
	t := newSQLiteSeal(s)
	return append(t.dropAll(), t.unseal()...)
}

// obstacles: run looks for them.
func (sealSQLite) obstacles(sealing) string { return "" }

// columns: run looks for them.
func (sealSQLite) columns(sealing) string { return "" }

// A sqliteSeal is a table to be sealed.
type sqliteSeal struct {
	sealing
	sqliteShape
	number int // behind the names of its triggers, where another table has those without
}

func newSQLiteSeal(s sealing) *sqliteSeal { return &sqliteSeal{sealing: s} }

// sqliteTriggers are a seal's triggers. They are created in this order: SQLite fires the
// one first that was created last.
var sqliteTriggers = []struct{ name, fires, does string }{
	// Rows with newer tokens are in the way. Unless the statement replaces them, SQLite does itself
	// what is to be done: fail, ignore, or the other arm of an upsert.
	{"inserting", "BEFORE INSERT", `WHEN {inTheWay} BEGIN
	{refuseReplace}
END`},
	{"updating", "BEFORE UPDATE", `WHEN {nowInTheWay} BEGIN
	{computed}{refuseReplace}
END`},
	{"insert", "BEFORE INSERT", `BEGIN
	SELECT CASE
	WHEN typeof({new}) <> 'integer' OR {new} NOT BETWEEN -{max} AND -1 THEN {unproven}
	{askTable}END;{noteTime}
END`},
	// It lets the triggers below make a mark positive. One that is left negative proves nothing by
	// staying as it is.
	{"update", "BEFORE UPDATE", `WHEN ({again}) IS NOT 1 BEGIN
	SELECT CASE
	{locks}{otherKey}WHEN {new} IS OLD.{mark} OR typeof({new}) <> 'integer' OR {new} NOT BETWEEN -{deleted} - {max} AND -1 OR {token} NOT BETWEEN 1 AND {max} THEN {unproven}
	WHEN {isStale} THEN {stale}
	{askTable}{askOld}END;{noteTime}
END`},
	{"delete", "BEFORE DELETE", `WHEN COALESCE(OLD.{mark}, 0) >= -{deleted}{orLeft} BEGIN
	SELECT {undeletable};
END`},
	{"inserted", "AFTER INSERT", `WHEN {new} < 0 BEGIN
	{askNew}UPDATE {table} SET {mark} = -{mark} WHERE {row} AND {mark} < 0;
END`},
	// It is fired behind the one below, which isn't fired from within itself, unless recursive_triggers is on.
	{"updated", "AFTER UPDATE", `WHEN {new} < 0{first} BEGIN
	SELECT {stays} FROM {table} WHERE {new} < -{deleted} AND {row} AND {mark} = {new};
	UPDATE {table} SET {mark} = -{mark} WHERE {row} AND {mark} < 0;
END`},
	// A trigger of the table may keep the row, by RAISE(IGNORE).
	{"deleted", "AFTER UPDATE", `WHEN {new} < -{deleted}{first} BEGIN
	DELETE FROM {table} WHERE {row} AND {mark} = {new};
	UPDATE {table} SET {mark} = {token} WHERE {row} AND {mark} = {new};
END`},
}

// createState creates the table of a file that has a seal, with one row. A trigger learns by it what
// becomes of duplicates: what it inserts there itself is handled as the statement says that is. So
// in the words of OR REPLACE the row is another one then, and is undone with the statement.
const createState = "CREATE TABLE IF NOT EXISTS {qualifiedState} (duplicate integer NOT NULL UNIQUE, replaces integer NOT NULL, began real)"

const (
	fillState = "INSERT OR IGNORE INTO {qualifiedState} (duplicate, replaces) VALUES (1, 0)"

	// refuseReplace: a constraint that is declared with ON CONFLICT REPLACE replaces by itself. Seal looks for it.
	refuseReplace = `INSERT OR IGNORE INTO {state} (duplicate, replaces) VALUES (1, 1);
	SELECT {stale} FROM {state} WHERE replaces{orDeclared};`

	orDeclared = " OR IFNULL((SELECT instr(lower(sql), 'conflict') AND instr(lower(sql), 'replace') FROM sqlite_master WHERE type = 'table' AND name = {nameText} COLLATE NOCASE), 1)"
)

// A trigger of the table's own may write a row again while its mark is the proof still. So a row that
// is negative could be written by anybody, if OR FAIL had left it so. That it is being written shows by the
// time at which the statement began, which is the same in all of its triggers.
const (
	noteTime = "\n\tUPDATE {state} SET began = {started} WHERE began IS NOT {started};"
	atWork   = "(SELECT began FROM {state}) IS {started}"
	started  = "julianday('now')"
)

// sqliteUnsealed are the triggers that stay when a seal is removed: what still writes by it
// would store negative marks.
var sqliteUnsealed = []struct{ name, fires, does string }{
	{"insert", "BEFORE INSERT", "WHEN {new} < 0 BEGIN\n\tSELECT {gone};\nEND"},
	{"update", "BEFORE UPDATE", "WHEN {new} < 0 BEGIN\n\tSELECT {gone};\nEND"},
}

// seal returns the statements that seal a table which has none of a seal's triggers. Should it have
// lost them, there may be negative marks.
func (s *sqliteSeal) seal() (stmts []string) {
	for _, text := range []string{createState, fillState} {
		stmts = append(stmts, renderSQLite(text, s.pieces()))
	}
	stmts = append(stmts, renderSQLite("UPDATE {qualified} SET {mark} = -{mark} % {deleted} WHERE {mark} < 0", s.pieces()))
	for _, t := range s.triggers {
		stmts = append(stmts, "DROP TRIGGER "+s.named(t.name))
	}
	for _, t := range sqliteTriggers {
		stmts = append(stmts, s.create(sqltext.SQLiteSeal, t.name, t.fires, t.does))
	}
	for _, t := range s.triggers {
		// The schema isn't in the text that SQLite keeps.
		stmts = append(stmts, strings.Replace(t.sql, "CREATE TRIGGER ", "CREATE TRIGGER "+s.prefix(), 1))
	}
	return stmts
}

// unseal returns the statements that do as is done when a seal was removed.
func (s *sqliteSeal) unseal() (stmts []string) {
	for _, t := range sqliteUnsealed {
		stmts = append(stmts, s.create(sqltext.SQLiteUnsealed, t.name, t.fires, t.does))
	}
	return stmts
}

// dropAll returns the statements that drop all triggers of a seal, whichever there are.
func (s *sqliteSeal) dropAll() (stmts []string) {
	for _, name := range s.triggerNames() {
		stmts = append(stmts, "DROP TRIGGER IF EXISTS "+s.named(name))
	}
	return stmts
}

// triggerNames returns those of all triggers that are a seal's, or that it leaves.
func (s *sqliteSeal) triggerNames() (names []string) {
	for _, t := range sqliteTriggers {
		names = append(names, s.triggerName(sqltext.SQLiteSeal, t.name))
	}
	for _, t := range sqliteUnsealed {
		names = append(names, s.triggerName(sqltext.SQLiteUnsealed, t.name))
	}
	return names
}

func (s *sqliteSeal) triggerName(prefix, name string) string {
	name = prefix + name + "_" + s.proof
	if s.number > 0 {
		name += "~" + strconv.Itoa(s.number)
	}
	return name
}

// named returns the name of a trigger, which is in its table's schema. What it is about says
// none.
func (s *sqliteSeal) named(name string) string { return s.prefix() + quoteSQLite(name) }

// qualified returns the table's name, as statements say it.
func (s *sqliteSeal) qualified() string { return s.prefix() + quoteSQLite(s.name) }

func (s *sqliteSeal) prefix() string {
	if s.schema == "" {
		return ""
	}
	return quoteSQLite(s.schema) + "."
}

func (s *sqliteSeal) create(prefix, name, fires, does string) string {
	return renderSQLite("CREATE TRIGGER {name} {fires} ON {table} FOR EACH ROW {does}",
		sqltext.Pieces{"name": sqltext.Raw(s.named(s.triggerName(prefix, name))), "fires": sqltext.Raw(fires), "does": sqltext.SQL(does)},
		s.pieces())
}

// pieces are what the triggers' texts name. What the table says, such as its names, is never
// searched for pieces itself.
func (s *sqliteSeal) pieces() sqltext.Pieces {
	mark := quoteSQLite(s.stored)
	isStale, refuses := " < ", " > "
	if s.SingleUse {
		isStale, refuses = " <= ", " >= "
	}
	token := "-NEW." + mark + " % " + sqltext.SQLiteDeleted
	newer := stored("way", mark) + refuses + s.replacing(token)
	return sqltext.Pieces{
		"table":          sqltext.Raw(quoteSQLite(s.name)),
		"qualified":      sqltext.Raw(s.qualified()),
		"mark":           sqltext.Raw(mark),
		"new":            sqltext.Raw("NEW." + mark),
		"token":          sqltext.Raw(token),
		"max":            sqltext.Raw(strconv.FormatInt(sqlfence.MaxToken, 10)),
		"deleted":        sqltext.Raw(sqltext.SQLiteDeleted),
		"again":          s.either("OLD.{mark} < 0 AND {new} IN (OLD.{mark}, -OLD.{mark} % {deleted}) AND "+atWork, "OLD.{mark} < 0 AND {new} = -OLD.{mark} % {deleted}"),
		"first":          s.either(" AND ({new} IS NOT OLD.{mark} OR {renamed})", ""), // another trigger may write it again, too
		"locks":          where(s.Lock.By != "", locksPass),
		"otherKey":       where(s.Ledger && s.KeyColumn != "", keyMoves),
		"ifOtherKey":     sqltext.Raw(s.otherKey("OLD")),
		"keyMoves":       sqltext.Raw(raise("sqlfence: table " + s.proof + " is sealed: the write changes the key of a row, whose token is another then (delete and insert it)")),
		"stays":          sqltext.Raw(raise("sqlfence: table " + s.proof + " is sealed: a row that a trigger deletes from within a DELETE would stay (set PRAGMA recursive_triggers = ON)")),
		"keptNow":        s.keeps("NEW"),
		"keptBefore":     s.keeps("OLD"),
		"declared":       sqltext.Raw(textSQLite(s.declared)),
		"altered":        sqltext.Raw(raise("sqlfence: table " + s.proof + " is sealed: the write carries no fencing token, and the table was altered since (call Seal again)")),
		"noteTime":       s.either(noteTime, ""),
		"orLeft":         s.either(" OR NOT "+atWork, ""),
		"started":        sqltext.Raw(started),
		"state":          sqltext.Raw(sqltext.SQLiteSealState),
		"qualifiedState": sqltext.Raw(s.prefix() + sqltext.SQLiteSealState),
		"computed":       sqltext.Raw(s.computed()),
		"refuseReplace":  sqltext.SQL(refuseReplace),
		"orDeclared":     where(!s.replacesNone, orDeclared),
		"nameText":       sqltext.Raw(textSQLite(s.name)),
		"renamed":        sqltext.Func(func(string) string { return s.renamed() }),
		"isStale":        sqltext.Raw(token + isStale + stored("OLD", mark)),
		"inTheWay":       sqltext.Raw(s.inTheWay(quoteSQLite(s.name), newer)),
		"nowInTheWay":    sqltext.Raw(s.nowInTheWay(quoteSQLite(s.name), newer)),
		"row":            sqltext.Func(func(string) string { return s.row() }),
		"askTable":       s.asks(s.KeyColumn == "", "{ask NEW}\n\t"),
		"askOld":         s.asks(s.KeyColumn != "", "{ask OLD}\n\t"),
		"askNew":         s.asks(s.KeyColumn != "", "SELECT CASE {ask NEW} END;\n\t"),
		"ask": sqltext.Func(func(row string) string {
			newest := s.newest(row)
			return "WHEN " + token + " IS NOT " + newest + " THEN CASE WHEN " + token + " < " + newest + " THEN " + s.stale() + " ELSE " +
				raise("sqlfence: token for table "+s.proof+" is not issued") + " END"
		}),

		"unproven":    sqltext.Raw(raise("sqlfence: table " + s.proof + " is sealed: the write carries no fencing token (set " + s.stored + " to minus the token)")),
		"undeletable": sqltext.Raw(raise("sqlfence: table " + s.proof + " is sealed: the DELETE carries no fencing token (to delete a row, set its " + s.stored + " to minus the token, less " + sqltext.SQLiteDeleted + ")")),
		"stale":       sqltext.Raw(s.stale()),
		"gone":        sqltext.Raw(raise(sqltext.SealedMark + ": table " + s.proof + " is not sealed any more (set " + s.stored + " to the token)")),
	}
}

// where returns a text that applies to some seals.
func where(applies bool, text string) sqltext.SQL {
	if applies {
		return sqltext.SQL(text)
	}
	return ""
}

// replacing is what a row's mark is compared with before it is replaced: -1 where no token replaces it, as with
// a write of a lock alone, which proves nothing, and with a row of another key, whose tokens are others.
func (s *sqliteSeal) replacing(token string) string {
	if s.Lock.By != "" {
		token = "CASE WHEN IFNULL(NEW." + quoteSQLite(s.stored) + ", 0) > -1 THEN -1 ELSE " + token + " END"
	}
	if s.Ledger && s.KeyColumn != "" {
		token = "CASE WHEN " + s.otherKey("way") + " THEN -1 ELSE " + token + " END"
	}
	return token
}

// either chooses by whether the table's own triggers may write a row again.
func (s *sqliteSeal) either(again, once string) sqltext.SQL {
	if s.writesAgain {
		return sqltext.SQL(again)
	}
	return sqltext.SQL(once)
}

// locksPass lets an UPDATE pass that changes nothing but the columns of EditLock, unless the table was
// altered since it was sealed: then what it changes may be a column that was added.
const locksPass = `WHEN COALESCE(OLD.{mark}, 0) >= 0 AND ({keptNow}) IS ({keptBefore}) THEN CASE
		WHEN (SELECT sql FROM sqlite_master WHERE type = 'table' AND name = {nameText} COLLATE NOCASE) IS NOT {declared} THEN {altered} END
	`

// keyMoves refuses what takes a row out of the scope of its token by that of another one.
const keyMoves = "WHEN {ifOtherKey} THEN {keyMoves}\n\t"

// computed names the columns of which others are generated: before an UPDATE SQLite has no other ones at
// hand than those that its triggers name, and computes NEW's from NULL.
func (s *sqliteSeal) computed() string {
	if len(s.computedOf) == 0 {
		return ""
	}
	var all []string
	for _, name := range s.computedOf {
		all = append(all, "NEW."+quoteSQLite(name))
	}
	return "SELECT " + strings.Join(all, ", ") + ";\n\t"
}

// keeps writes the columns that aren't of locks, as NEW or OLD, with their types: 1.0 is equal to 1.
func (s *sqliteSeal) keeps(row string) sqltext.Piece {
	var parts []string
	for _, name := range s.kept {
		column := row + "." + quoteSQLite(name)
		parts = append(parts, column+" COLLATE BINARY", "typeof("+column+")")
	}
	return sqltext.Raw(strings.Join(parts, ", "))
}

func (s *sqliteSeal) stale() string {
	return raise("sqlfence: stale token for table " + s.proof + ", which has a newer one")
}

// stored is a row's mark as a number.
func stored(row, mark string) string {
	return "abs(COALESCE(CAST(" + row + "." + mark + " AS INTEGER), 0))"
}

// raise aborts the statement. Its text has to be a constant: before version 3.47, SQLite
// can't open a file where it is none.
func raise(message string) string { return "RAISE(ABORT, " + textSQLite(message) + ")" }

// asks is a text about the ledger, if it applies.
func (s *sqliteSeal) asks(applies bool, text string) sqltext.Piece {
	if !s.Ledger || !applies {
		return sqltext.Raw("")
	}
	return sqltext.SQL(text)
}

// otherKey is the condition that a row has another key than NEW, and so another token.
func (s *sqliteSeal) otherKey(row string) string {
	key := quoteSQLite(s.KeyColumn)
	return "CAST(" + row + "." + key + " AS TEXT) COLLATE BINARY IS NOT CAST(NEW." + key + " AS TEXT)"
}

// newest is the newest token of a row's name.
func (s *sqliteSeal) newest(row string) string {
	name := textSQLite(s.Resource)
	if s.KeyColumn != "" {
		name = textSQLite(s.Resource+"/") + " || CAST(" + row + "." + quoteSQLite(s.KeyColumn) + " AS TEXT)"
	}
	return "(SELECT max(CAST(token AS INTEGER)) FROM " + sqltext.LedgerTable + " WHERE name = " + name + ")"
}
