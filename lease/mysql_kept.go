package lease

import (
	"maps"
	"time"

	my "github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// On MySQL and MariaDB a statement about a live lease is sent without a transaction, if its session is in autocommit
// mode. A process that stops in a transaction keeps the row locked until the server ends the session, and no other
// process could take the lease after its end. The form in a transaction locks the row first, and reads only with locks,
// or what it has written: on TiDB other reads see the rows as of BEGIN.

const lockRowMySQL = "SELECT 1 FROM fencing_leases WHERE lock_id = {lock} FOR UPDATE"

const extendMySQL = `UPDATE fencing_leases AS l SET l.expires_at = {after {ttl}}
WHERE l.lock_id = {lock} AND l.expires_at > {now} AND {alive l}`

const extendedMySQL = `SELECT l.expires_at, l.expires_at - {now} FROM fencing_leases AS l
WHERE l.lock_id = {lock} AND l.expires_at > {now} AND {alive l}`

// aloneMySQL is a condition: the session is in autocommit mode, and the server isn't TiDB, where a statement without a
// transaction locks nothing before its commit. inTimeMySQL also requires that the lease is live when the row is locked,
// by SYSDATE, which includes the wait. If SYSDATE can't be used, the condition is false, and the statement is sent in a
// transaction: with sysdate-is-now, after SET timestamp, and with binlog_format = STATEMENT, where a lagging replica
// would evaluate its own SYSDATE and consider the lease ended.
const aloneMySQL = " AND " + my.CommitsAlone + my.NotOnTiDB

const inTimeMySQL = aloneMySQL + ` AND @@binlog_format <> _utf8mb4'STATEMENT'
	AND SYSDATE(6) > NOW(6) AND SYSDATE(6) < NOW(6) + INTERVAL 10 MINUTE
	AND l.expires_at > {now} + TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))`

const releaseMySQL = `UPDATE fencing_leases AS l SET l.lock_id = {kept}, l.session = NULL, l.holder = {mark}, ` +
	`l.expires_at = LAST_INSERT_ID({ends})
WHERE l.lock_id = {lock} AND l.expires_at > {now} AND {alive l}`

// freeing are the values of a released lease that is free at once; holding are the values until {hold} after the lease
// was acquired. No value reads a column that the UPDATE assigns, because MySQL assigns from left to right.
var (
	freeing = sqltext.Fragments{"kept": sqltext.Raw("NULL"), "mark": sqltext.SQL("{release}"),
		"ends": sqltext.SQL("{now}")}
	holding = sqltext.Fragments{
		"kept": sqltext.SQL("CASE WHEN l.acquired_at + {hold} > {now} THEN {release} END"),
		"mark": sqltext.SQL("CASE WHEN l.acquired_at + {hold} > {now} THEN {empty} ELSE {release} END"),
		"ends": sqltext.SQL("GREATEST(l.acquired_at + {hold}, {now})"),
	}
)

// releasedMySQL is a query for the key of the lease that the session has just released, which it finds by an index on
// the time. It has no row if another process has taken the lease since.
const releasedMySQL = `SELECT {column} FROM fencing_leases
WHERE expires_at = LAST_INSERT_ID() AND (lock_id IS NULL AND holder = {release} OR lock_id = {release})`

const undoMySQL = `UPDATE fencing_leases AS l SET l.lock_id = NULL, l.session = NULL, l.expires_at = {now} ` +
	`WHERE l.{column} = {key} AND l.lock_id = {lock}`

// undoOnMySQL waits for a take that is about to commit.
func undoOnMySQL(key, lockID string) statement {
	p := constants(map[string]string{"key": key, "lock": lockID})
	inTransaction := texts(p, "SELECT 1 FROM fencing_leases WHERE {column} = {key} FOR UPDATE", undoMySQL)
	return orAlone(inTransaction, p, undoMySQL+aloneMySQL, "")
}

// extendOnMySQL locks the row before it reads the clock, or an expired lease could come back to life after a wait.
func extendOnMySQL(lockID string, ttl time.Duration) statement {
	p := constants(map[string]string{"lock": lockID})
	p["ttl"] = number(my.Text.Ticks(ttl))
	inTransaction := texts(p, lockRowMySQL, extendMySQL, extendedMySQL+" FOR UPDATE")
	return orAlone(inTransaction, p, extendMySQL+inTimeMySQL, extendedMySQL)
}

func releaseOnMySQL(lockID, release string, hold time.Duration, _ bool) statement {
	p := constants(map[string]string{"lock": lockID, "release": release, "none": noKey})
	ends := freeing
	if hold > 0 {
		ends = holding
	}
	maps.Copy(p, ends)
	p["hold"] = number(my.Text.Ticks(hold))
	return orAlone(texts(p, lockRowMySQL, releaseMySQL, releasedMySQL), p, releaseMySQL+inTimeMySQL,
		"SELECT COALESCE(("+releasedMySQL+"), {none})")
}

// orAlone returns s, a statement in a transaction, with s.alone, a form without a transaction that is sent first, and
// with answer as the query for that form's result.
func orAlone(s statement, p sqltext.Fragments, alone, answer string) statement {
	s.alone = render(my.Text, alone, p, mysqlFragments)
	s.result = render(my.Text, answer, p, mysqlFragments)
	return s
}
