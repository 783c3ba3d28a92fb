// Package sealsql has the triggers of a sealed table.
package sealsql

import (
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/seal"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// sealed builds the triggers of a table's seal.
type sealed struct{ *seal.Table }

// A Trigger is a MySQL trigger that runs for each row before an event.
type Trigger struct{ Event, Body string }

// Triggers returns the triggers of a table's seal.
func Triggers(of *seal.Table) []Trigger {
	t := sealed{of}
	insert := sealWrite
	if t.Claim {
		insert = sealNew
	}
	return []Trigger{t.trigger("insert", insert), t.trigger("update", sealWrite),
		t.trigger("delete", sealDelete)}
}

// OpenTriggers returns the triggers of an unsealed table. They refuse a negative token in the fence column, which
// presents the token to a seal. A CHECK constraint would copy the table when it is added, and INSERT IGNORE would
// silently skip the rows that it refuses.
func OpenTriggers(of *seal.Table) []Trigger {
	t := sealed{of}
	return []Trigger{t.trigger("insert", sealOpen), t.trigger("update", sealOpen)}
}

// Stored returns a trigger's body as the catalogue shows it, which leaves out the character sets of constants.
func Stored(body string) string {
	return strings.TrimSpace(strings.ReplaceAll(body, "_utf8mb4", ""))
}

func (t sealed) trigger(event, text string) Trigger {
	body, _ := sqltext.Render(mysql.Text, text, t.fragments(event))
	return Trigger{event, body}
}

// ledger returns the ledger's name, and an expression for its database. In a trigger an unqualified name and
// DATABASE() mean the database of the trigger's table, even after the database was restored under another name.
func (t sealed) ledger() (table, home string) {
	d := mysql.Text
	if t.LedgerIn == "" {
		return d.Quote(sqltext.LedgerTable), "DATABASE()"
	}
	return d.Quote(t.LedgerIn) + "." + d.Quote(sqltext.LedgerTable), d.Text(t.LedgerIn)
}

// fragments returns the fragments that the triggers' SQL names in braces.
func (t sealed) fragments(event string) sqltext.Fragments {
	d := mysql.Text
	raw := func(parts ...string) sqltext.Fragment { return sqltext.Raw(strings.Join(parts, "")) }
	only := func(applies bool, text string) sqltext.Fragment {
		if !applies {
			return sqltext.Raw("")
		}
		return sqltext.SQL(text)
	}
	said, mark := "sqlfence: table "+t.Name+" is sealed: ", d.Quote(t.Column)
	held, row, less := "0", "NEW", "<"
	unproven := said + "the write carries no fencing token (set " + t.Column + " to minus the token)"
	if event != "insert" {
		held = "ABS(COALESCE(OLD." + mark + ", 0))"
		less = t.Than("<=", "<", "<>")
	}
	if event == "delete" {
		row = "OLD"
		unproven = said + "the DELETE lacks AND LENGTH(@" + sqltext.DeleteTokenVariable + " := CONCAT('" + t.Name +
			":', NOW(6), ':', <token>)) > 0"
	}
	name, key, serial := d.Text(t.Resource), "."+d.Quote(t.Key), "."+d.Quote(t.Serial)
	if t.Key != "" {
		name = "CONCAT(" + d.Text(t.Resource+"/") + ", CONVERT(" + row + key + " USING utf8mb4))"
	}
	moves := t.Key != "" && event == "update"
	raises := t.Serial != "" && event == "update"
	ledger, home := t.ledger()
	errno := func(r sqltext.SealRefusal) sqltext.Fragment {
		return sqltext.Raw(strconv.Itoa(int(sqltext.SealErrno[r])))
	}
	return sqltext.Fragments{
		"mark": raw(mark), "held": raw(held), "less": raw(less), "max": raw(seal.MaxToken),
		"name": raw(name), "proof": raw(d.Text(t.Name + ":")), "variable": raw(sqltext.DeleteTokenVariable),
		"colon":  raw(d.Text(":")),
		"ledger": raw(ledger), "home": raw(home),
		"refuses": sqltext.SQL(sealRefuse), "asks": only(t.Ledger, sealLedger),
		"several": only(event == "delete", sealTokens),
		"seen":    sqltext.Func(func(given string) string { return t.seen(given, home, name) }),
		"samekey": only(moves, " AND NOT ({moves})"), "movedkey": only(moves, sealKey),
		"moves": raw("NOT (CAST(CONVERT(OLD", key, " USING utf8mb4) AS BINARY) <=> CAST(CONVERT(NEW", key,
			" USING utf8mb4) AS BINARY))"),
		"raised": only(raises, " AND {raises}"), "kept": only(raises, sealSerial),
		"raises":    raw("COALESCE(NEW", serial, " > COALESCE(OLD", serial, ", 0), FALSE)"),
		"unproven":  raw(d.Text(unproven)),
		"takenover": only(t.Claim && event == "update", sealTaken), "hasclaim": only(t.Claim, sealClaim),
		"endclaim": only(t.Claim, "\n\t\tEND IF;"),
		"otherkey": raw(d.Text(said + "changing the key of a row is not allowed (delete and insert it)")),
		"sameold":  raw(d.Text(said + "the write doesn't raise the serial (set " + t.Serial + " to itself plus 1)")),
		"stale":    raw(d.Text("sqlfence: stale token ")), "than": raw(d.Text(" for table " + t.Name + ", which has ")),
		"high": raw(d.Text("sqlfence: token ")),
		"unissued": raw(d.Text(" for table " + t.Name + " is not issued, the " +
			"newest is ")),
		"open": raw(d.Text("sqlfence: table " + t.Name + " isn't sealed, and stores no negative mark (" +
			sqltext.SealedPrefix + ")")),
		"noproof": errno(sqltext.NoToken), "isstale": errno(sqltext.StaleToken), "ishigh": errno(sqltext.NotIssuable),
		"isserial": errno(sqltext.SerialNotAdvanced), "isopen": errno(sqltext.NotSealed),
	}
}

// sealWrite is the body of the triggers for inserted and updated rows. It declares variables only in the ELSE branch,
// in which it refuses a token or compares it with the ledger. NOT needs brackets, because its precedence depends on
// sql_mode.
const sealWrite = `{takenover}IF NEW.{mark} < 0 AND NEW.{mark} >= -{max} AND NOT (-NEW.{mark} {less} {held}){raised}{samekey}{seen -NEW.{mark}} THEN
	SET NEW.{mark} = -NEW.{mark};
ELSE BEGIN
	DECLARE given, held, newest BIGINT DEFAULT 0;
	DECLARE refusal INT DEFAULT {isstale};
	DECLARE problem VARCHAR(512) CHARACTER SET utf8mb4;
	SET given = -COALESCE(NEW.{mark}, 0), held = {held};{refuses}
	SET NEW.{mark} = given;
END; END IF`

// sealTaken is a part of sealWrite for a table with Claim. It lets an UPDATE pass that increases the row's claim, which
// takes the row over.
const sealTaken = `IF COALESCE(NEW.{mark} > {held}, FALSE) THEN
	SET NEW.{mark} = NEW.{mark};
ELSE`

// sealNew is the INSERT trigger of a table with Claim: its new rows present no token.
const sealNew = `BEGIN
	IF NEW.{mark} < 0 THEN
		SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = {noproof}, MESSAGE_TEXT = {unproven};
	END IF;
END`

// sealDelete is the body of the trigger for deleted rows. It accepts only a token that this DELETE itself presents in
// the session variable, which also contains the time at which the statement started.
const sealDelete = `BEGIN
	DECLARE given, held, newest BIGINT DEFAULT 0;
	DECLARE refusal INT DEFAULT {isstale};
	DECLARE problem, head, proof VARCHAR(16000) CHARACTER SET utf8mb4;
	SET head = CONCAT({proof}, NOW(6), {colon}), proof = CONVERT(@{variable} USING utf8mb4), held = {held};
	IF COALESCE(CAST(LEFT(proof, CHAR_LENGTH(head)) AS BINARY) = CAST(head AS BINARY), FALSE) THEN
		SET proof = SUBSTRING(proof, CHAR_LENGTH(head) + 1);
		{hasclaim}SET given = CAST(SUBSTRING_INDEX(proof, ',', 1) AS SIGNED);{endclaim}
	END IF;{refuses}
END`

// sealClaim is a part of sealDelete for a table with Claim. It lets a DELETE pass that has compared the row's claim
// itself, as a guard does, or that presents the claim.
const sealClaim = `IF proof = '` + guard.ComparedHere + `' OR FIND_IN_SET(held, proof) > 0 THEN
			SET given = held;
		ELSE
			`

// sealRefuse compares the presented token with the row's, and throws an error if it is missing or stale.
const sealRefuse = `
	IF given <= 0 THEN
		SET refusal = {noproof}, problem = {unproven};
	ELSEIF given > {max} THEN
		SET refusal = {ishigh}, problem = CONCAT({high}, given, {unissued}, held);
	ELSEIF given {less} held THEN
		SET problem = CONCAT({stale}, given, {than}, held);{movedkey}
	END IF;{asks}{kept}
	IF problem IS NOT NULL THEN
		SET problem = LEFT(problem, 128);
		SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = refusal, MESSAGE_TEXT = problem;
	END IF;`

// sealLedger compares the token with the ledger. For the statement's other rows it stores the statement's time, the
// token, its name and the ledger's database in a session variable; a statement may use several ledgers. It stores
// nothing if SET timestamp may have stopped NOW, because a later statement would have the same time and pass without a
// comparison. With --sysdate-is-now it never stores anything, because SYSDATE is NOW.
const sealLedger = `
	IF problem IS NULL AND NOT (TRUE{seen given}) THEN
		SET newest = COALESCE((SELECT MAX(t.token) FROM {ledger} AS t WHERE t.name = {name} LOCK IN SHARE MODE), 0);{several}
		IF given < newest THEN
			SET problem = CONCAT({stale}, given, {than}, newest);
		ELSEIF given > newest THEN
			SET refusal = {ishigh}, problem = CONCAT({high}, given, {unissued}, newest);
		ELSEIF SYSDATE(6) > NOW(6) AND SYSDATE(6) < NOW(6) + INTERVAL 1 SECOND THEN
			SET @sqlfence_seen = CONCAT(NOW(6), ':', given, ':', LENGTH({home}), ':', {home}, ':', {name});
		END IF;
	END IF;`

// sealTokens accepts each of several tokens that a DELETE presents, if it is the newest of the row's name.
const sealTokens = `
		IF FIND_IN_SET(newest, proof) > 0 THEN
			SET given = newest;
		END IF;`

// sealKey refuses an UPDATE that changes a row's key, because a token of another name guards the row afterwards, and
// the UPDATE presents a token for one name only.
const sealKey = `
	ELSEIF {moves} THEN
		SET refusal = {noproof}, problem = {otherkey};`

// sealSerial refuses an UPDATE that doesn't increase the row's version, because a reader of the older version would
// overwrite this UPDATE without a conflict.
const sealSerial = `
	IF problem IS NULL AND NOT {raises} THEN
		SET refusal = {isserial}, problem = {sameold};
	END IF;`

// seen returns a condition: the statement already holds the lock of the ledger's row, so that no client has issued a
// newer token.
func (t sealed) seen(given, home, name string) string {
	if !t.Ledger {
		return ""
	}
	return " AND COALESCE(CAST(@sqlfence_seen AS BINARY) = CAST(CONCAT(NOW(6), ':', " + given + ", ':', LENGTH(" +
		home + "), ':', " + home + ", ':', " + name + ") AS BINARY), FALSE)"
}

const sealOpen = `BEGIN
	IF NEW.{mark} < 0 THEN
		SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = {isopen}, MESSAGE_TEXT = {open};
	END IF;
END`
