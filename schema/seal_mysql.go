package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// sealMySQL seals by triggers of rows: there are no others. A table that isn't sealed any more
// has two that refuse negative marks: a constraint would copy the table, and IGNORE
// would skip its rows.
//
// The table is locked meanwhile, so that writers find all of the triggers, or none.
type sealMySQL struct{}

var (
	sealsMySQL = []trigger{{"insert", sealMySQLWrite}, {"update", sealMySQLWrite}, {"delete", sealMySQLDelete}}
	opensMySQL = []trigger{{"open insert", openMySQL}, {"open update", openMySQL}}
)

// seal: what seals the table already is dropped while other triggers refuse all writes. They stay if
// that is interrupted, and would be dropped by another Seal.
func (sealMySQL) seal(s sealing) []string {
	on, off := s.busy()
	lift := []string{}
	if s.negative { // the triggers that are there let such marks in, and may refuse that they are lifted
		on, off = off, nil
		lift = append(lift, "UPDATE "+s.table+" SET "+s.column+" = -"+s.column+" WHERE "+s.column+" < 0")
	}
	return s.locked(slices.Concat(s.try(sealsMySQL), on, s.drop(openPrefix, sqltext.SealPrefix), lift, s.create(sealsMySQL), off))
}

// negatives: marks are negative that were stored while the table lacked triggers, as when a migration had made
// it anew. They count by their size.
func (sealMySQL) negatives(s sealing) string {
	return "SELECT 1 FROM " + s.table + " WHERE " + s.column + " < 0 LIMIT 1"
}

// obstacles: a cascade fires no triggers, and what isn't a signed bigint takes no negative token. That the fence
// column is missing the server would say, too, but not what adds it.
func (sealMySQL) obstacles(s sealing) string {
	return strings.NewReplacer("{home}", s.home(), "{table}", s.text.Text(s.name), "{column}", s.text.Text(s.stored)).Replace(
		`SELECT CONCAT(_utf8mb4'its foreign key ', constraint_name, _utf8mb4' changes or deletes rows by a cascade, which no trigger sees; declare it RESTRICT')
FROM information_schema.referential_constraints WHERE constraint_schema = {home} AND table_name = {table}
	AND (delete_rule NOT IN ('RESTRICT', 'NO ACTION') OR update_rule NOT IN ('RESTRICT', 'NO ACTION'))
UNION ALL SELECT CONCAT(_utf8mb4'its fence column is ', column_type, _utf8mb4', want bigint')
FROM information_schema.columns WHERE table_schema = {home} AND table_name = {table} AND column_name = {column}
	AND (data_type <> 'bigint' OR column_type LIKE '%unsigned%')
UNION ALL SELECT CONCAT(_utf8mb4'it has no column ', {column}, _utf8mb4'; schema.AddFence or sqlfence add-fence adds it')
FROM information_schema.tables WHERE table_schema = {home} AND table_name = {table}
	AND NOT EXISTS (SELECT 1 FROM information_schema.columns AS c WHERE c.table_schema = {home} AND c.table_name = {table} AND c.column_name = {column})
UNION ALL SELECT CONCAT(_utf8mb4'it is a table of the engine ', engine, _utf8mb4', want InnoDB')
FROM information_schema.tables WHERE table_schema = {home} AND table_name = {table} AND engine <> 'InnoDB'`)
}

// columns: those that are generated follow from others. A column with ON UPDATE CURRENT_TIMESTAMP
// gets the time by itself.
func (sealMySQL) columns(s sealing) string {
	return strings.NewReplacer("{home}", s.home(), "{table}", s.text.Text(s.name)).Replace(
		`SELECT column_name, CASE WHEN extra LIKE '%on update current_timestamp%' THEN CONCAT(_utf8mb4'NOW(', COALESCE(datetime_precision, 0), _utf8mb4')') ELSE _utf8mb4 X'' END
FROM information_schema.columns WHERE table_schema = {home} AND table_name = {table} AND COALESCE(generation_expression, _utf8mb4 X'') = _utf8mb4 X''
ORDER BY ordinal_position`)
}

// unseal: what writes as to a sealed table is refused as soon as it isn't.
func (sealMySQL) unseal(s sealing) []string {
	_, off := s.busy()
	return s.locked(slices.Concat(s.try(opensMySQL), s.drop(openPrefix), s.create(opensMySQL), s.drop(sqltext.SealPrefix), off))
}

// locked returns statements that have the table to themselves, for which they wait a second. A trigger is
// read and run in the sql_mode that it was created in, whoever writes: by HIGH_NOT_PRECEDENCE a comparison is another
// one, and by ORACLE a block isn't read at all, once the former triggers are gone.
func (s sealing) locked(statements []string) []string {
	all := append([]string{
		"SET @sqlfence_lock_wait_timeout = @@SESSION.lock_wait_timeout",
		"SET SESSION lock_wait_timeout = 1",
		"SET @sqlfence_sql_mode = @@SESSION.sql_mode",
		"SET SESSION sql_mode = 'STRICT_TRANS_TABLES'",
		"LOCK TABLES " + s.table + " WRITE",
	}, statements...)
	return append(all, "UNLOCK TABLES", "SET SESSION sql_mode = @sqlfence_sql_mode", "SET SESSION lock_wait_timeout = @sqlfence_lock_wait_timeout")
}

// openPrefix begins the names of the triggers of a table that isn't sealed any more.
const openPrefix = sqltext.OpenPrefix

// trigger returns the name of a trigger, which is unique in the table's schema: another table may have one of
// its name, as it was called like this one, or is by another letter's case.
func (s sealing) trigger(kind string) string {
	prefix := sqltext.SealPrefix
	if open, isOpen := strings.CutPrefix(kind, "open "); isOpen {
		prefix, kind = openPrefix, open
	}
	name := s.own(prefix + kind + ":")
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

// triggers is a query for the triggers of seals that the table has, of a former name's, too.
func (sealMySQL) triggers(s sealing) string {
	return strings.NewReplacer("{home}", s.home(), "{table}", s.text.Text(s.name), "{seal}", s.text.Text(sqltext.SealPrefix+"%"), "{open}", s.text.Text(openPrefix+"%")).Replace(
		`SELECT trigger_name FROM information_schema.triggers
WHERE event_object_schema = {home} AND event_object_table = {table} AND (trigger_name LIKE {seal} OR trigger_name LIKE {open})`)
}

// allTriggers is a query for the triggers of seals that any table of the schema has.
func (sealMySQL) allTriggers(s sealing) string {
	return strings.NewReplacer("{home}", s.home(), "{seal}", s.text.Text(sqltext.SealPrefix+"%"), "{open}", s.text.Text(openPrefix+"%")).Replace(
		`SELECT trigger_name FROM information_schema.triggers
WHERE event_object_schema = {home} AND (trigger_name LIKE {seal} OR trigger_name LIKE {open})`)
}

// ledger is a query for the database in which the session has the ledger, as guards find it.
func (sealMySQL) ledger(s sealing) string {
	return "SELECT table_schema FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = " + s.text.Text(sqltext.LedgerTable)
}

// tokens names the ledger. In a trigger a name without a database is that of its table's.
func (s sealing) tokens() string {
	if s.schema != "" && s.ledgerIn != "" {
		return s.text.Quote(s.ledgerIn) + "." + s.text.Quote(sqltext.LedgerTable)
	}
	return s.of(sqltext.LedgerTable)
}

// home writes the table's schema as a text.
func (s sealing) home() string {
	if s.schema != "" {
		return s.text.Text(s.schema)
	}
	return "DATABASE()"
}

// A trigger has its kind, which is its event, or "open" and its event.
type trigger struct{ kind, body string }

// event is what fires it.
func (t trigger) event() string { return strings.TrimPrefix(t.kind, "open ") }

// busy returns statements between which all writes are refused; none for a table that isn't sealed.
func (s sealing) busy() (on, off []string) {
	if !slices.ContainsFunc(s.found, func(name string) bool { return isBusy(name) || strings.HasPrefix(name, sqltext.SealPrefix) }) {
		return nil, nil
	}
	for _, event := range []string{"insert", "update", "delete"} {
		name := s.trigger("open " + busyKind + event)
		if !slices.ContainsFunc(s.found, func(found string) bool { return s.of(found) == name }) {
			on = append(on, "CREATE TRIGGER "+name+" BEFORE "+strings.ToUpper(event)+" ON "+s.table+" FOR EACH ROW\nSIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = "+
				s.text.Text("sqlfence: table "+s.proof+" refuses all writes, as its seal was interrupted (call Seal again)"))
		}
		off = append(off, "DROP TRIGGER IF EXISTS "+name) // another Seal may have done so
	}
	return on, off
}

const busyKind = "busy-"

func isBusy(trigger string) bool { return strings.HasPrefix(trigger, sqltext.SealBusy) }

// try creates triggers by another name, with what does nothing should one stay, and drops them. Nothing brings
// back what was dropped, and who may drop triggers may not be let create any, or the column that they name
// may be missing.
func (s sealing) try(triggers []trigger) (statements []string) {
	name := s.trigger("open try")
	for _, t := range triggers {
		idle := trigger{t.kind, "IF FALSE THEN\n" + t.body + ";\nEND IF"}
		statements = append(statements, "DROP TRIGGER IF EXISTS "+name, s.named(name, idle), "DROP TRIGGER "+name)
	}
	return statements
}

// drop drops all of the triggers that the table may have with these prefixes, but for those that refuse all writes.
func (s sealing) drop(prefixes ...string) (statements []string) {
	for _, prefix := range prefixes {
		kinds := []string{"insert", "update", "delete"}
		if prefix == openPrefix {
			kinds = []string{"open insert", "open update"}
		}
		for _, name := range s.found {
			if strings.HasPrefix(name, prefix) && !isBusy(name) {
				statements = append(statements, "DROP TRIGGER IF EXISTS "+s.of(name))
			}
		}
		for _, kind := range kinds {
			statements = append(statements, "DROP TRIGGER IF EXISTS "+s.trigger(kind))
		}
	}
	return statements
}

// create creates triggers by their names.
func (s sealing) create(triggers []trigger) (statements []string) {
	for _, t := range triggers {
		statements = append(statements, s.named(s.trigger(t.kind), t))
	}
	return statements
}

// named creates a trigger by this name.
func (s sealing) named(name string, t trigger) string {
	text, _ := sqltext.Render(s.text, "CREATE TRIGGER "+name+" BEFORE "+strings.ToUpper(t.event())+" ON "+s.table+" FOR EACH ROW\n"+t.body, s.pieces(t.event()))
	return text
}

// pieces are what the triggers' texts name.
func (s sealing) pieces(event string) sqltext.Pieces {
	d := s.text
	raw := func(parts ...string) sqltext.Piece { return sqltext.Raw(strings.Join(parts, "")) }
	only := func(applies bool, text string) sqltext.Piece {
		if !applies {
			return sqltext.Raw("")
		}
		return sqltext.SQL(text)
	}
	said := "sqlfence: table " + s.proof + " is sealed: "
	held, row, less := "0", "NEW", "<"
	unproven := said + "the write carries no fencing token (set " + s.stored + " to minus the token)"
	if event != "insert" {
		held = "ABS(COALESCE(OLD." + s.column + ", 0))"
		if s.SingleUse {
			less = "<="
		}
	}
	if event == "delete" {
		row, unproven = "OLD", said+"the DELETE carries no fencing token (have it set @"+sqltext.DeleteProofVariable+")"
	}
	name, key := d.Text(s.Resource), "."+d.Quote(s.KeyColumn)
	if s.KeyColumn != "" {
		name = "CONCAT(" + d.Text(s.Resource+"/") + ", CONVERT(" + row + key + " USING utf8mb4))"
	}
	locks := sqltext.Piece(sqltext.Raw(""))
	if s.Lock.By != "" && event == "update" {
		locks = sqltext.SQL("ELSEIF {kept} THEN BEGIN END;\n")
	}
	moves := s.Ledger && s.KeyColumn != "" && event == "update"
	return sqltext.Pieces{
		"mark": raw(s.column), "held": raw(held), "less": raw(less), "max": raw(strconv.FormatInt(sqlfence.MaxToken, 10)),
		"name": raw(name), "proof": raw(d.Text(s.proof + ":")), "variable": raw(sqltext.DeleteProofVariable), "colon": raw(d.Text(":")),
		"tokens":  raw(s.tokens()),
		"refuses": sqltext.SQL(sealMySQLRefuse), "asks": only(s.Ledger, sealMySQLLedger),
		"several": only(event == "delete", sealMySQLSeveral), "seen": sqltext.Func(func(given string) string { return s.seen(given, name) }),
		"locks": locks, "kept": sqltext.Func(func(string) string { return s.keeps() }),
		"samekey": only(moves, " AND NOT ({moves})"), "movedkey": only(moves, sealMySQLKey),
		"moves":    raw("NOT CAST(CONVERT(OLD", key, " USING utf8mb4) AS BINARY) <=> CAST(CONVERT(NEW", key, " USING utf8mb4) AS BINARY)"),
		"unproven": raw(d.Text(unproven)),
		"otherkey": raw(d.Text(said + "the write changes a row's key, and its token with it (delete and insert it)")),
		"stale":    raw(d.Text("sqlfence: stale token ")), "than": raw(d.Text(" for table " + s.proof + ", which has ")),
		"high": raw(d.Text("sqlfence: token ")), "unissued": raw(d.Text(" for table " + s.proof + " is not issued, the newest is ")),
		"open": raw(d.Text("sqlfence: table " + s.proof + " isn't sealed, and stores no negative mark (" + sqltext.SealedMark + ")")),
	}
}

// keeps is a condition by which an UPDATE changes nothing but the columns of the locks. A column that
// was added since might be changed, so there are none.
func (s sealing) keeps() string {
	d := s.text
	var same []string
	for _, c := range s.all {
		if slices.ContainsFunc([]string{s.Lock.By, s.Lock.Since, s.Lock.Expiry}, func(lock string) bool { return strings.EqualFold(lock, c.name) }) {
			continue
		}
		now, was := "NEW."+d.Quote(c.name), "OLD."+d.Quote(c.name)
		is := "CAST(" + now + " AS BINARY) <=> CAST(" + was + " AS BINARY) AND " + now + " <=> " + was
		if c.sets != "" {
			is = "(" + is + " OR " + now + " <=> " + c.sets + ")"
		}
		same = append(same, is)
	}
	return "COALESCE(OLD." + s.column + ", 0) >= 0 AND " + strings.Join(same, " AND ") + " AND " + strconv.Itoa(len(s.all)) +
		" = (SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = " + s.home() + " AND table_name = " + d.Text(s.name) +
		" AND COALESCE(generation_expression, _utf8mb4 X'') = _utf8mb4 X'')"
}

// sealMySQLWrite declares its variables where it needs them, which is seldom.
const sealMySQLWrite = `IF NEW.{mark} < 0 AND NEW.{mark} >= -{max} AND NOT -NEW.{mark} {less} {held}{samekey}{seen -NEW.{mark}} THEN
	SET NEW.{mark} = -NEW.{mark};
{locks}ELSE BEGIN
	DECLARE given, held, newest BIGINT DEFAULT 0;
	DECLARE problem VARCHAR(512) CHARACTER SET utf8mb4;
	SET given = -COALESCE(NEW.{mark}, 0), held = {held};{refuses}
	SET NEW.{mark} = given;
END; END IF`

// sealMySQLDelete reads a proof of this statement: it has the time at which that began.
const sealMySQLDelete = `BEGIN
	DECLARE given, held, newest BIGINT DEFAULT 0;
	DECLARE problem, head, proof VARCHAR(16000) CHARACTER SET utf8mb4;
	SET head = CONCAT({proof}, NOW(6), {colon}), proof = CONVERT(@{variable} USING utf8mb4), held = {held};
	IF COALESCE(CAST(LEFT(proof, CHAR_LENGTH(head)) AS BINARY) = CAST(head AS BINARY), FALSE) THEN
		SET proof = SUBSTRING(proof, CHAR_LENGTH(head) + 1);
		SET given = CAST(SUBSTRING_INDEX(proof, ',', 1) AS SIGNED);
	END IF;{refuses}
END`

// sealMySQLRefuse compares the token that was given.
const sealMySQLRefuse = `
	IF given <= 0 THEN
		SET problem = {unproven};
	ELSEIF given > {max} THEN
		SET problem = CONCAT({high}, given, {unissued}, held);
	ELSEIF given {less} held THEN
		SET problem = CONCAT({stale}, given, {than}, held);{movedkey}
	END IF;{asks}
	IF problem IS NOT NULL THEN
		SET problem = LEFT(problem, 128);
		SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = problem;
	END IF;`

// sealMySQLLedger notes what it has compared for the statement's other rows, but not where the session's
// time may stand still, and be that of a later statement, too. With --sysdate-is-now both times do.
const sealMySQLLedger = `
	IF problem IS NULL AND NOT (TRUE{seen given}) THEN
		SET newest = COALESCE((SELECT MAX(t.token) FROM {tokens} AS t WHERE t.name = {name} LOCK IN SHARE MODE), 0);{several}
		IF given < newest THEN
			SET problem = CONCAT({stale}, given, {than}, newest);
		ELSEIF given > newest THEN
			SET problem = CONCAT({high}, given, {unissued}, newest);
		ELSEIF SYSDATE(6) > NOW(6) AND SYSDATE(6) < NOW(6) + INTERVAL 1 SECOND THEN
			SET @sqlfence_seen = CONCAT(NOW(6), ':', given, ':', {name});
		END IF;
	END IF;`

// sealMySQLSeveral: of a proof's tokens it may be any.
const sealMySQLSeveral = `
		IF FIND_IN_SET(newest, proof) > 0 THEN
			SET given = newest;
		END IF;`

// sealMySQLKey refuses what takes a row out of the scope of its token by that of another one.
const sealMySQLKey = `
	ELSEIF {moves} THEN
		SET problem = {otherkey};`

// seen returns a condition by which the statement has the lock of the ledger's row already, and
// so nobody has raised the token.
func (s sealing) seen(given, name string) string {
	if !s.Ledger {
		return ""
	}
	return " AND COALESCE(CAST(@sqlfence_seen AS BINARY) = CAST(CONCAT(NOW(6), ':', " + given + ", ':', " + name + ") AS BINARY), FALSE)"
}

const openMySQL = `BEGIN
	IF NEW.{mark} < 0 THEN
		SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = {open};
	END IF;
END`
