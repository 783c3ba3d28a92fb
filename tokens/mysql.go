package tokens

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	my "github.com/sqlfence/sqlfence/internal/dialect/mysql"
	facts "github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/stop"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// mysql is MySQL and MariaDB. An UPDATE returns what it wrote as its LAST_INSERT_ID, because clientFoundRows changes
// the number of affected rows.
//
// A session with autocommit = 0 doesn't commit single statements. In such a session the condition {alone} makes a
// single statement do nothing, and the statement is sent again in a transaction. Reads always have a transaction, or
// such a session would see the same rows for ever.
//
// Names are constants in the texts: an argument would take another round trip, and be in the session's character set.
// The row with the empty name, which the first Issue adds, stores the lower bound of first tokens. Statements that
// issue tokens share a lock of this row; Repair locks it exclusively, so that no token is issued meanwhile.
var mysql = sync.OnceValue(func() *dialect {
	return &dialect{
		Dialect: my.Text,
		names:   sqlfence.MySQL,
		server:  my.Session,

		issue: issueMySQL,
		each:  eachMySQL,
		adopt: adoptMySQL,
		reached: bounded(my.Text,
			`SELECT CASE WHEN held.token < 0 THEN held.token ELSE GREATEST(COALESCE(held.token, 0), base.floor) END
FROM (SELECT {floor} AS floor) AS base LEFT JOIN {ledger} AS held ON held.name = ?`, nil),
		current: render(my.Text, `SELECT token FROM {ledger} WHERE name = ?`),
		page:    pageMySQL,
		ensure:  ensureMySQL,

		columns: render(my.Text,
			`SELECT LOWER(column_name), LOWER(column_type), is_nullable = _utf8mb4'NO' AND column_default IS NULL `+
				`AND extra = {empty}
FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = _utf8mb4'{ledger}' `+
				`ORDER BY ordinal_position`),
		unfit: my.Unfit(sqltext.LedgerTable, []my.Column{{Name: "name", Bytes: 512}, {Name: "token"}}, "name"),
		probe: bounded(my.Text, "EXPLAIN "+issueTextMySQL,
			sqltext.Fragments{"name": sqltext.SQL("{empty}"), "count": number(1), "tag": number(0), "alone": number(0)}),

		// Writers wait for a CREATE TRIGGER, and a trigger keeps the sql_mode of its creation.
		keeping: keeping{
			find: render(my.Text, `SELECT trigger_name, action_statement
FROM (SELECT trigger_name, action_statement, event_object_schema AS table_schema, event_object_table AS table_name `+
				`FROM information_schema.triggers) AS t
WHERE t.table_schema = DATABASE() AND t.table_name = _utf8mb4'{ledger}'`),
			before: []string{
				"SET @sqlfence_lock_wait_timeout = @@SESSION.lock_wait_timeout, " +
					"@sqlfence_sql_mode = @@SESSION.sql_mode",
				"SET SESSION lock_wait_timeout = 1, sql_mode = 'STRICT_TRANS_TABLES'",
			},
			after: []string{"SET SESSION lock_wait_timeout = @sqlfence_lock_wait_timeout, " +
				"sql_mode = @sqlfence_sql_mode"},
		},

		// At READ UNCOMMITTED a session would read a token that may be rolled back and issued again. With
		// binlog_format = STATEMENT no lower level can write.
		reads: &sql.TxOptions{Isolation: sql.LevelRepeatableRead},

		holds: func(on *facts.Capabilities, held []sqlfence.Token) ([]string,
			[]any) {
			return holdMySQL(on, held), nil
		},
		holdsClaim: func(on *facts.Capabilities, c Claim, _ any, key string, claim int64) ([]string, []any) {
			return holdClaimMySQL(on, c, my.Text.Text(key), strconv.FormatInt(claim, 10)), nil
		},
		within: withinMySQL,

		// At this level no other client can add a row to a table with all rows locked. The level can't be set in an
		// open transaction.
		level:    &sql.TxOptions{Isolation: sql.LevelRepeatableRead},
		before:   my.EndTx,
		lockRows: func(table string) string { return render(my.Text, "SELECT COUNT(*) FROM "+table+" FOR UPDATE") },
		start:    bounded(my.Text, serveMySQL, nil),
		below: render(my.Text, `SELECT name, token FROM {ledger} WHERE token > 0 AND token < ? `+
			`AND name <> {empty} ORDER BY name FOR UPDATE`),
		advance: render(my.Text, `UPDATE {ledger} JOIN (SELECT CAST(? AS SIGNED) AS floor) AS new
SET token = new.floor WHERE token > 0 AND token < new.floor AND name <> {empty}`),
		serve:   render(my.Text, serveMySQL),
		refused: render(my.Text, "INSERT INTO {ledger} (name, token) VALUES (_binary'sqlfence:', 1)"),
		unused:  `SELECT name, COALESCE(token, 0) FROM {ledger} WHERE name IN ({names}) FOR UPDATE SKIP LOCKED`,
		listed: func(names []string) (string, []any) {
			quoted := make([]string, len(names))
			for i, name := range names {
				quoted[i] = my.Text.Text(name)
			}
			return strings.Join(quoted, ", "), nil
		},
		retires: func(name string) (string, []any) {
			const text = `SELECT name, COALESCE(token, 0) FROM {ledger} WHERE ` + retiredMySQL
			return mysqlText(text+` ORDER BY name FOR UPDATE`, retiredFragments(name)), nil
		},
		retire: retireMySQL,
	}
})

// pageMySQL: with the sql_mode EMPTY_STRING_IS_NULL an empty argument is NULL.
const pageMySQL = "name > COALESCE(?, {empty}) AND LOCATE(COALESCE(?, {empty}), name) = 1"

const serveMySQL = `INSERT INTO {ledger} (name, token) VALUES ({empty}, ?)
ON DUPLICATE KEY UPDATE token = GREATEST(COALESCE({ledger}.token, 0), VALUES(token))`

// issueTextMySQL issues {count} tokens of {name}, if it has a row. It is no INSERT, because the LAST_INSERT_ID of an
// INSERT could be that of an AUTO_INCREMENT column. {tag} is a random number above all tokens, see execID.
const issueTextMySQL = `UPDATE {ledger} AS t JOIN {ledger} AS base ON base.name = {empty}
SET t.token = LAST_INSERT_ID({tag} + GREATEST(COALESCE(t.token, 0), COALESCE(base.token, 0)) + {count}) - {tag}
WHERE t.name = {name} AND COALESCE(t.token, 0) BETWEEN 0 AND {max} - {count} ` +
	`AND COALESCE(base.token, 0) <= {max} - {count} AND {alone}`

const adoptTextMySQL = `UPDATE {ledger} ` +
	`SET token = LAST_INSERT_ID({tag} + GREATEST(COALESCE(token, 0), {token})) - {tag} WHERE name = {name} AND {above} AND {alone}`

// addTextMySQL adds a name, or locks its row.
const addTextMySQL = `INSERT INTO {ledger} (name, token) VALUES ({name}, 0) ON DUPLICATE KEY UPDATE token = token`

// alone is a condition that holds if a statement commits without a COMMIT. It is false with autocommit = 0, and with
// completion_type = CHAIN, where each COMMIT begins the next transaction. With always, a statement has no condition.
const (
	alone  = sqltext.Raw(my.CommitsAlone)
	always = sqltext.Raw("TRUE")
)

// errNoStart: the ledger has no row with the empty name yet.
var errNoStart = errors.New("no start")

func issueMySQL(ctx context.Context, s *Store, name string, n int64) (last int64, err error) {
	p := sqltext.Fragments{"name": sqltext.Raw(my.Text.Text(name)), "count": number(n)}
	err = s.withStart(ctx, func() error {
		last, err = s.writeID(ctx, issueTextMySQL, p, true, lockStartMySQL)
		return err
	})
	return last, err
}

// withStart calls issue, and calls it again after adding the row with the empty name if that is missing.
func (s *Store) withStart(ctx context.Context, issue func() error) error {
	err := issue()
	for errors.Is(err, errNoStart) {
		if err := s.transact(ctx, addStartMySQL); err != nil {
			return err
		}
		err = issue()
	}
	return err
}

func lockStartMySQL(ctx context.Context, tx *sql.Tx) error {
	_, err := startMySQL(ctx, tx)
	return err
}

// startMySQL keeps Repair from moving where the tokens of new names start, and returns that number.
func startMySQL(ctx context.Context, tx *sql.Tx) (start int64, err error) {
	text := mysqlText("SELECT COALESCE(token, 0) FROM {ledger} WHERE name = {empty}", nil)
	err = my.ShareLock(func(lock string) error {
		text := text + lock
		return tx.QueryRowContext(trusted.Context(ctx, text), text).Scan(&start)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return 0, errNoStart
	}
	return start, err
}

// addStartMySQL needs a separate transaction, because sessions that lock a missing row and then insert the row deadlock
// (gap locks).
func addStartMySQL(ctx context.Context, tx *sql.Tx) error {
	return execAll(ctx, tx, []string{mysqlText(addTextMySQL, sqltext.Fragments{"name": sqltext.Raw(my.Text.Text(""))})})
}

func adoptMySQL(ctx context.Context, s *Store, token sqlfence.Token) (current int64, err error) {
	const issued = sqltext.Raw("COALESCE(token, 0) > 0")
	p := sqltext.Fragments{"name": sqltext.Raw(my.Text.Text(token.Name)), "token": number(token.Value)}
	err = s.withStart(ctx, func() error {
		p["above"] = issued
		current, err = s.writeID(ctx, adoptTextMySQL, p, false, func(ctx context.Context, tx *sql.Tx) error {
			p["above"] = issued
			start, err := startMySQL(ctx, tx)
			if token.Value > start {
				p["above"] = always
			}
			return err
		})
		return err
	})
	return current, err
}

const ensureSize = 5000

// ensureMySQL: IGNORE skips names that exist, with a shared lock, which guarded writes hold as well.
func ensureMySQL(ctx context.Context, s *Store, names []string) error {
	return s.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for part := range slices.Chunk(names, ensureSize) {
			if err := execAll(ctx, tx, []string{addMySQL("INSERT IGNORE", part, "")}); err != nil {
				return err
			}
		}
		return nil
	})
}

// retiredMySQL finds a name, and by the index the names of its rows: 0 comes after the slash.
const retiredMySQL = `(name = {name} OR name >= {first} AND name < {last})`

// addMySQL returns a statement that adds names, from a verb and an end.
func addMySQL(verb string, names []string, end string) string {
	rows := make([]string, len(names))
	for i, name := range names {
		rows[i] = "(" + my.Text.Text(name) + ", 0)"
	}
	return mysqlText(verb+" INTO {ledger} (name, token) VALUES {rows}"+end,
		sqltext.Fragments{"rows": sqltext.Raw(strings.Join(rows, ", "))})
}

func retiredFragments(name string) sqltext.Fragments {
	return sqltext.Fragments{
		"name":  sqltext.Raw(my.Text.Text(name)),
		"first": sqltext.Raw(my.Text.Text(name + "/")),
		"last":  sqltext.Raw(my.Text.Text(name + "0")),
	}
}

func retireMySQL(ctx context.Context, tx *sql.Tx, name string) (found bool, err error) {
	text := mysqlText(`UPDATE {ledger} SET token = LAST_INSERT_ID({max} + 1) WHERE `+
		retiredMySQL, retiredFragments(name))
	id, err := sureID(ctx, tx, text, false, 0)
	return id > 0, err
}

// writeID sends a text alone and returns its LAST_INSERT_ID. If the text did nothing, writeID sends it in a
// transaction, after first and after adding the name; sql.ErrNoRows if it does nothing there. rises reports whether the
// text changes each row it finds.
func (s *Store) writeID(
	ctx context.Context, text string, p sqltext.Fragments, rises bool, first func(context.Context, *sql.Tx) error,
) (id int64, err error) {
	tag := newTag()
	p["alone"], p["tag"] = alone, number(tag)
	err = s.resend(ctx, func() error {
		return stop.Abandoned(ctx, s.cleanup, mysqlText(text, p), func(text string) error {
			return s.alone(ctx, func(in session) error {
				id, err = execID(ctx, in, text, rises, tag)
				return err
			})
		})
	})
	if err != nil || id > 0 {
		return id, err
	}
	p["alone"] = always
	err = s.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := first(ctx, tx); err != nil {
			return err
		}
		if err := execAll(ctx, tx, []string{mysqlText(addTextMySQL, p)}); err != nil {
			return err
		}
		id, err = sureID(ctx, tx, mysqlText(text, p), rises, tag)
		if err == nil && id == 0 {
			err = sql.ErrNoRows
		}
		return err
	})
	return id, err
}

// alone calls do with a connection outside of a transaction. Like the pool, it replaces a broken connection.
func (s *Store) alone(ctx context.Context, do func(in session) error) (err error) {
	once := func() error {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		return do(conn)
	}
	for range 3 {
		if err = once(); !errors.Is(err, driver.ErrBadConn) {
			break
		}
	}
	return err
}

// sureID is execID in a transaction, for a statement that may find the value stored already.
func sureID(ctx context.Context, tx *sql.Tx, text string, rises bool, tag int64) (id int64, err error) {
	if id, err = execID(ctx, tx, text, rises, tag); err != nil || id > 0 || rises {
		return id, err
	}
	if err := execAll(ctx, tx, []string{render(my.Text, "SELECT LAST_INSERT_ID(0)"), text}); err != nil {
		return 0, err
	}
	if id, err = queryID(ctx, tx); err != nil || id == 0 {
		return 0, err
	}
	return untagged(id, tag)
}

// execID executes a statement and returns its LAST_INSERT_ID, which is tag and a token, without the tag; 0 if it set
// none or changed no row. If the table has triggers, the server's response lacks the ID, and the session is queried.
// After a wait for a lock, TiDB's response may have an ID although no row was changed; so if rises is set, the ID
// counts only with a changed row.
func execID(ctx context.Context, in session, text string, rises bool, tag int64) (id int64, err error) {
	result, err := in.ExecContext(trusted.Context(ctx, text), text)
	if err != nil {
		return 0, err
	}
	if id, err = result.LastInsertId(); err != nil {
		return 0, err
	}
	if id == 0 || rises {
		if changed, err := result.RowsAffected(); err != nil || changed == 0 {
			return 0, err
		}
	}
	if id == 0 {
		if id, err = queryID(ctx, in); err != nil {
			return 0, err
		}
	}
	return untagged(id, tag)
}

func queryID(ctx context.Context, in session) (id int64, err error) {
	text := render(my.Text, "SELECT LAST_INSERT_ID()")
	err = in.QueryRowContext(trusted.Context(ctx, text), text).Scan(&id)
	return id, err
}

// tagUnit is a power of two above all tokens.
const tagUnit = 1 << 50

// newTag returns a random multiple of tagUnit that an integer has room for, with a token.
func newTag() int64 { return (1 + rand.Int64N(1<<13-1)) * tagUnit }

// untagged returns the token in a LAST_INSERT_ID. Another tag is another statement's: a proxy that shares the server's
// sessions among its clients has sent the query for the ID to another session.
func untagged(id, tag int64) (int64, error) {
	if token := id - tag; 0 <= token && token < tagUnit {
		return token, nil
	}
	return 0, errOtherSession
}

var errOtherSession = errors.New("another session has answered than the one that issued the token; the proxy in " +
	"front of the server must not share sessions between statements")

func mysqlText(text string, p sqltext.Fragments) string {
	text, _ = sqltext.Render(my.Text, text, p, fragments)
	return text
}

func number(n int64) sqltext.Fragment { return sqltext.Raw(strconv.FormatInt(n, 10)) }

// holdMySQL locks the rows of the names in order and compares the tokens, both with the newest version of a row, which
// a locking read sees, and with the version in the transaction's snapshot, which a plain read sees: if the snapshot is
// older than the token, the transaction must not continue. On TiDB all reads of a locking query see the newest version,
// so a second query compares the snapshot.
func holdMySQL(on *facts.Capabilities, held []sqlfence.Token) []string {
	asked := make([]string, len(held))
	for i, t := range held {
		asked[i] = "SELECT _binary X'" + hex.EncodeToString([]byte(t.Name)) + "' AS name, " + strconv.Itoa(i) +
			" AS place, " + strconv.FormatInt(t.Value, 10) + " AS token"
	}
	stored := storedMySQL("token")
	raise := func(reason, value string) string { return throwHeld(my.Text, reason, "asked.place", value) }
	from := " ELSE 1 END FROM (" + strings.Join(asked, " UNION ALL ") +
		") AS asked LEFT JOIN {ledger} AS t ON t.name = asked.name" + my.Text.Capabilities().Unlimited
	newest := "CASE WHEN t.name IS NULL THEN " + raise(unknownName, "0") +
		" WHEN " + stored + " <> asked.token THEN " + raise(otherValue, stored)
	older := " THEN " + raise(olderSnapshot, "asked.token")
	if on.LocksAlone {
		return []string{
			mysqlText(newest+from+" FOR UPDATE", nil),
			mysqlText("SELECT CASE WHEN "+stored+" <> asked.token"+older+from, nil),
		}
	}
	return []string{mysqlText(newest+" WHEN COALESCE((SELECT s.token FROM {ledger} AS s WHERE s.name = t.name), 0) "+
		"<> asked.token"+older+from+" LOCK IN SHARE MODE", nil)}
}

// storedMySQL is an expression for the number that a column of t stores.
func storedMySQL(column string) string { return "COALESCE(CAST(t." + column + " AS SIGNED), 0)" }

// holdClaimMySQL is holdMySQL for the row of a claim. The key is a constant, so that MySQL uses an index of any type.
func holdClaimMySQL(on *facts.Capabilities, c Claim, key, claim string) []string {
	stored := storedMySQL("{column}")
	fill := strings.NewReplacer("{of}", c.Table, "{key}", c.Key, "{column}", c.Column, "{name}", key, "{claim}", claim)
	raise := func(reason, value string) string { return throwHeld(my.Text, reason, "0", value) }
	if on.LocksAlone {
		from := " ELSE 1 END FROM (SELECT 1 AS one) AS asked LEFT JOIN {of} AS t ON t.{key} = {name}" +
			my.Text.Capabilities().Unlimited
		return []string{
			fill.Replace("CASE WHEN t.{key} IS NULL OR " + stored + " <> {claim} THEN " + raise(otherValue, stored) +
				from + " FOR UPDATE"),
			fill.Replace("SELECT CASE WHEN " + stored + " <> {claim} THEN " + raise(olderSnapshot, "{claim}") + from),
		}
	}
	return []string{fill.Replace("CASE WHEN h.n <> 1 OR h.v <> {claim} THEN " + raise(otherValue, "h.v") +
		" WHEN h.v <> COALESCE((SELECT CAST(s.{column} AS SIGNED) FROM {of} AS s " +
		"WHERE s.{key} = CASE WHEN h.n = 1 THEN {name} END), 0) THEN " + raise(olderSnapshot, "h.v") + " ELSE 1 END " +
		"FROM (SELECT COUNT(*) AS n, COALESCE(MAX(CAST(t.{column} AS SIGNED)), 0) AS v FROM {of} AS t " +
		"WHERE t.{key} = {name} LOCK IN SHARE MODE) AS h" + my.Text.Capabilities().Unlimited)}
}

// withinMySQL: MariaDB reports whether a transaction is open. MySQL doesn't, but keeps a savepoint only in one.
func withinMySQL(s *Store, send sender, _, checks string, args []any) error {
	primary := "CASE WHEN " + my.Session.Standby + " THEN " +
		throwHeld(my.Text, onStandby, "0", "CONNECTION_ID()") + " ELSE 1 END, "
	if !s.savepoints.Load() {
		open := "CASE WHEN FALSE /*M! OR @@in_transaction = 1 */ THEN 1 ELSE " +
			throwHeld(my.Text, outside, "0", "CONNECTION_ID()") + " END, "
		err := send("SELECT "+open+primary+checks, args...)
		if !sqltext.IsThrown(my.Text, err, ":"+outside+":") {
			return err
		}
	}
	if err := send("SAVEPOINT sqlfence_hold"); err != nil {
		return err
	}
	if err := send("SELECT "+primary+checks, args...); err != nil {
		return err
	}
	err := send("RELEASE SAVEPOINT sqlfence_hold")
	if number, ok := dberr.MySQLNumber(err); ok && number == noSavepoint {
		return errOutside
	}
	s.savepoints.Store(err == nil)
	return err
}

// noSavepoint is the number of the error of a RELEASE outside of a transaction.
const noSavepoint = 1305
