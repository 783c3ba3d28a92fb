package lease

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence/internal/dberr"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// postgres is the dialect of PostgreSQL. Its statements read the clock after every wait.
var postgres = sync.OnceValue(func() *dialect {
	texts := postgresTexts()
	return &dialect{
		Dialect: pg.Text, server: pg.Session,
		create: createPostgres, addNotify: addNotifyUntil, createIndex: createIndex,
		// The query finds a usable index on expires_at with any name.
		hasIndex: pg.Qualified(`SELECT 1 FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = pg_catalog.to_regclass('fencing_leases') AND i.indisvalid AND i.indpred IS NULL ` +
			`AND a.attname = 'expires_at'`),
		procedures:    pg.CreateLeaseProcedures,
		hasProcedures: pg.FindProcedures("sqlfence_lease_acquire", "sqlfence_lease_extend", "sqlfence_lease_release"),
		probe:         probePostgres,
		writers:       2, // one statement may wait for the disk while another is executed
		take:          takeOnPostgres,
		takeAll:       takeAllOnPostgres,
		releaseAll:    releaseAllOnPostgres,
		undo: func(key, lockID string) statement {
			return statement{text: texts.undo, args: []any{key, lockID}}
		},
		extend: func(lockID string, ttl time.Duration) statement {
			return statement{text: texts.extend, args: []any{lockID, pg.Text.Ticks(ttl)}}
		},
		release: func(lockID, release string, hold time.Duration, notify bool) statement {
			text, args := texts.release, []any{lockID, release}
			if hold > 0 {
				text, args = texts.hold, append(args, pg.Text.Ticks(hold))
			}
			if notify {
				text += texts.notifying
			}
			return statement{text: text, args: args}
		},
		released: func(release string) statement {
			return statement{text: pg.Qualified("SELECT key FROM fencing_leases WHERE lock_id IS NULL AND holder = " +
				"$1::text OR lock_id = $1::text"), args: []any{release}}
		},
		list: func(column, value string) statement {
			if column == "" {
				return statement{text: texts.list + " ORDER BY key"}
			}
			return statement{text: pg.Qualified(texts.list + " AND " + column + " = $1::text"), args: []any{value}}
		},
		ended: func(lockID string) statement {
			return statement{text: pg.Qualified("SELECT 1 FROM fencing_leases WHERE lock_id = $1::text"),
				args: []any{lockID}}
		},
		sweep: statement{text: render(pg.Text, sweepPostgres, postgresFragments)},
		// The server drops an advisory lock when the session ends.
		session: func(id int64) (lock, unlock statement) {
			return statement{text: "SELECT pg_catalog.pg_advisory_lock($1::bigint)", args: []any{id}},
				statement{text: "SELECT pg_catalog.pg_advisory_unlock($1::bigint)", args: []any{id}}
		},
		identity: func(mark string) (set, get statement) {
			return statement{text: "SELECT pg_catalog.set_config('sqlfence.session', $1::pg_catalog.text, false)",
					args: []any{mark}},
				statement{text: "SELECT COALESCE(pg_catalog.texteq(pg_catalog.current_setting('sqlfence.session', " +
					"true), $1::pg_catalog.text), pg_catalog.texteq($1::pg_catalog.text, ''))", args: []any{mark}}
		},
	}
})

const createPostgres = `CREATE TABLE IF NOT EXISTS fencing_leases (
	key          text        NOT NULL PRIMARY KEY,
	lock_id      text        UNIQUE,
	holder       text        NOT NULL,
	session      bigint,
	token        bigint      NOT NULL,
	acquired_at  timestamptz NOT NULL,
	expires_at   timestamptz NOT NULL,
	notify_until timestamptz
)`

// addNotifyUntil adds a column that a table of an older version lacks, for listeners.
const addNotifyUntil = "ALTER TABLE fencing_leases ADD COLUMN IF NOT EXISTS notify_until timestamptz"

// takePostgres takes the lease and issues its token in one statement. It always returns one row: the lease that it
// took, or NULL, and the state before. Arguments: key, lock id, owner, ttl in µs, session, and whether to extend a
// lease that the owner has already ([Refresh]).
//
// The WITH item seen reads the statement's snapshot. If it shows that the attempt can't succeed, the statement neither
// writes nor waits. Because a snapshot may be old, the item won decides again on the locked row of the lease.
//
// The same attempt may be sent twice, because database/sql sends it again after a broken connection. If the lease's row
// is live and has the attempt's own lock id, the first statement took the lease: the statement returns it, and writes
// nothing. If the first statement is still being executed, seen can't see its row, but won finds the row and throws an
// error, and the statement is sent again.
//
// To take a free or expired lease, the statement first takes the name's turn at the ledger, an advisory lock, which
// waits for transactions that wrote under the old token. Then it locks the lease's row, reads the clock, and locks the
// ledger's row to read its newest token. Any other order can deadlock. If the lease was live in the snapshot, but ends
// before won reads it, the statement hasn't taken the turn: won throws an error, and the statement is sent again. The
// item ledger stores the token. If another session issues a name's first token at the same moment, the snapshot doesn't
// show it, and ledger throws an error.
//
// An attempt that will wait for a notification sets the row's notify_until: a release before this time sends a
// notification. The release must come after notify_until is set. If seen finds a late enough notify_until on the row of
// a live lease, the release of this lease will notify, because notify_until only increases and only rows of ended
// leases are deleted. The item marking sets notify_until on the locked row of a live lease, so the release comes later.
// If seen found none, and marking set none, the row has changed in between, and the attempt is repeated
// instead of waiting.
const takePostgres = `WITH seen AS MATERIALIZED (
	SELECT clock.now, held.holder, held.session AS held_session, held.token AS held_token, held.acquired_at, held.expires_at,
		{durable} AS durable,
		CASE WHEN ledger.token < 0 THEN ledger.token ELSE GREATEST(ledger.token, {floor}) END AS token,
		COALESCE(held.expires_at > clock.now AND {alive held}, false) AS live,
		COALESCE(held.lock_id = $2::text, false) AS own, {marked before} AS marked,
		CASE WHEN $5::bigint IS NULL OR NOT pg_catalog.pg_try_advisory_xact_lock_shared($5::bigint) THEN true
			WHEN NOT {holds $5::bigint} THEN false END AS session
	FROM (SELECT {now} AS now) AS clock
	LEFT JOIN fencing_leases AS held ON held.key = $1::text
	LEFT JOIN {ledger} AS ledger ON ledger.name = $1::text
), won AS (
	INSERT INTO fencing_leases AS l (key, lock_id, holder, session, token, acquired_at, expires_at)
	SELECT $1::text, $2::text, $3::text, $5::bigint, pg_catalog.int8pl(seen.token, 1), clock.now,
		{later clock.now, $4::bigint}
	FROM seen, LATERAL (SELECT {now} AS now FROM (SELECT CASE WHEN NOT seen.live
		THEN {turn $1::text} END OFFSET 0) AS turn OFFSET 0) AS clock
	WHERE seen.session AND CASE WHEN seen.live THEN NOT seen.own AND $3::text <> '' AND seen.holder = $3::text
		ELSE seen.token >= 0 AND seen.token < {max} AND {seen $1::text} END
	ON CONFLICT (key) DO UPDATE SET (lock_id, holder, session, token, acquired_at, expires_at) = (
		SELECT
			CASE WHEN same THEN l.lock_id ELSE excluded.lock_id END,
			excluded.holder,
			CASE WHEN same THEN l.session ELSE excluded.session END,
			CASE WHEN same THEN l.token ELSE pg_catalog.int8pl(1, GREATEST(
				l.token, pg_catalog.int8mi(excluded.token, 1),
				(SELECT token FROM {ledger} WHERE name = l.key FOR UPDATE))) END,
			CASE WHEN same THEN l.acquired_at ELSE now END,
			CASE WHEN same AND NOT $6::boolean THEN l.expires_at ELSE {later now, $4::bigint} END
		FROM (SELECT now, $3::text <> '' AND l.holder = $3::text AND l.expires_at > now AND {alive l} AS same
			FROM (SELECT {now} AS now) AS clock OFFSET 0) AS m)
	WHERE CASE WHEN l.expires_at > {now} AND {alive l} THEN CASE
			WHEN l.lock_id = $2::text THEN {overtaken l.token} IS NOT NULL
			ELSE $3::text <> '' AND l.holder = $3::text END
		WHEN (SELECT live FROM seen) THEN {overtaken l.token} IS NOT NULL
		ELSE true END
	RETURNING *
), ledger AS (
	INSERT INTO {ledger} AS t (name, token)
	SELECT won.key, won.token FROM won WHERE won.lock_id = $2::text
	ON CONFLICT (name) DO UPDATE SET token = CASE
		WHEN COALESCE(t.token, 0) < excluded.token AND excluded.token <= {max} THEN excluded.token
		ELSE {overtaken t.token} END
{marking})
SELECT seen.live, seen.session, {marked now}, seen.token, COALESCE(seen.holder, ''), {micros seen.expires_at}, ` +
	`{micros pg_catalog.timestamptz_mi(seen.expires_at, seen.now)},
	won.key, won.lock_id, won.holder, won.token, {micros won.acquired_at}, {micros won.expires_at},
	won.session IS NOT NULL, {micros pg_catalog.timestamptz_mi(won.expires_at, pg_catalog.statement_timestamp())}
FROM seen LEFT JOIN (
	SELECT key, lock_id, holder, session, token, acquired_at, expires_at FROM won
	UNION ALL
	SELECT $1::text, $2::text, holder, held_session, held_token, acquired_at, expires_at FROM seen WHERE live AND own
) AS won ON true`

// waitingFragments are the parts of takePostgres for an attempt that will wait for a notification. Its additional
// argument is the maximum wait in µs. notify_until lies a minute later, so that it serves many attempts.
var waitingFragments = sqltext.Fragments{
	"marked": sqltext.Func(func(when string) string {
		if when == "before" {
			return "COALESCE(held.notify_until >= " + later("clock.now, $7::bigint") + ", false)"
		}
		return "seen.marked OR EXISTS (SELECT FROM marked)"
	}),
	"marking": sqltext.SQL(`), marked AS (
	UPDATE fencing_leases AS l SET notify_until = 
		pg_catalog.timestamptz_pl_interval({later {now}, $7::bigint}, interval '1 minute')
	FROM seen
	WHERE seen.live AND NOT seen.own AND NOT seen.marked AND ($3::text = '' OR seen.holder <> $3::text)
		AND l.key = $1::text AND l.expires_at > {now} AND {alive l}
	RETURNING l.key
`),
}

// pollingFragments are the parts of takePostgres for an attempt that won't wait for a notification.
var pollingFragments = sqltext.Fragments{"marked": sqltext.Raw("false"), "marking": sqltext.Raw("")}

// overtaken is a text in the error that the statement of take throws if its snapshot is too old: a newer token was
// issued, or the same attempt has taken the lease. The statement that gives back a lease after its caller has gone
// throws it too, while the statement that takes the lease is being executed.
var overtaken = sqltext.NewMarker("lease")

// extendPostgres has the arguments lock id and ttl in µs. It locks the row before it reads the clock, because an
// expired lease could become live again after a wait.
const extendPostgres = `UPDATE fencing_leases AS l SET expires_at = {later n.now, $2::bigint}
FROM (SELECT key, {now} AS now, {durable} AS durable FROM (SELECT key FROM fencing_leases ` +
	`WHERE lock_id = $1::text FOR UPDATE) AS locked) AS n
WHERE l.key = n.key AND l.lock_id = $1::text AND l.expires_at > n.now AND {alive l}
RETURNING {micros l.expires_at}, {micros pg_catalog.timestamptz_mi(l.expires_at, pg_catalog.statement_timestamp())}`

// releasePostgres has the arguments lock id and a random id of this release, which the row keeps as its holder.
const releasePostgres = `UPDATE fencing_leases AS l SET lock_id = NULL, session = NULL, holder = $2::text, expires_at = {now}
` + ofLeasePostgres

// holdPostgres releases a lease with [MinHold]. Its arguments are the lock id, the release's random id, and the time
// hold in µs. All columns are set by one reading of the clock.
const holdPostgres = `UPDATE fencing_leases AS l SET session = NULL, (lock_id, holder, expires_at) = (
	SELECT CASE WHEN m.until > m.now THEN $2::text END, CASE WHEN m.until > m.now THEN '' ELSE $2::text END, ` +
	`GREATEST(m.until, m.now)
	FROM (SELECT {now} AS now, {later l.acquired_at, $3::bigint} AS until, ` +
	`{durable} AS durable OFFSET 0) AS m)
` + ofLeasePostgres

const ofLeasePostgres = `WHERE lock_id = $1::text AND expires_at > {now} AND {alive l}
RETURNING key`

// undoPostgres has the arguments key and lock id. It tries to share the name's turn at the ledger, an advisory lock, as
// guarded writes do, but doesn't wait for it, because writers would queue behind the wait. The try fails while a
// statement of take has the turn or waits for it: then undo fails and is repeated, unless the lease's row shows that
// the statement of take has ended. undo is an upsert, so that it finds a row that was added after the snapshot.
const undoPostgres = `INSERT INTO fencing_leases AS l (key, holder, token, acquired_at, expires_at)
SELECT $1::text, '', 0, {now}, {now}
FROM (SELECT CASE WHEN NOT EXISTS (SELECT FROM fencing_leases WHERE key = $1::text AND lock_id = $2::text)
	AND NOT {share $1::text} THEN {overtaken $1::text} END OFFSET 0) AS turn
ON CONFLICT (key) DO UPDATE SET lock_id = NULL, session = NULL, expires_at = {now}
WHERE l.lock_id = $2::text`

// listPostgres ends with a condition, so that callers can append AND or ORDER BY. It compares expires_at also with
// statement_timestamp, because the planner can use an index for this time, but not for the clock.
const listPostgres = `SELECT key, lock_id, holder, token, {micros acquired_at}, {micros expires_at}, session IS NOT NULL
FROM fencing_leases AS l
WHERE expires_at > pg_catalog.statement_timestamp() AND {live l}`

const sweepPostgres = `DELETE FROM fencing_leases AS l WHERE expires_at <= {now} OR NOT {alive l}`

var postgresTexts = sync.OnceValue(func() (t struct {
	take, wait, probe, probeWait, takeAll                    sqltext.Bounded
	extend, release, hold, notifying, releaseAll, undo, list string
}) {
	text := func(text string) string { return render(pg.Text, text, postgresFragments) }
	t.take, t.wait = bounded(takePostgres, pollingFragments), bounded(takePostgres, waitingFragments)
	const probe = "EXPLAIN " + takePostgres
	t.probe, t.probeWait = bounded(probe, pollingFragments), bounded(probe, waitingFragments)
	t.takeAll = bounded(takeAllPostgres)
	t.extend, t.release, t.hold = text(extendPostgres), text(releasePostgres), text(holdPostgres)
	t.notifying, t.releaseAll = text(notifying), text(releaseAllPostgres)
	t.undo, t.list = text(undoPostgres), text(listPostgres)
	return t
})

// notifying is an additional column of a statement that releases leases. It sends the notification.
const notifying = `, CASE WHEN l.notify_until > {now} THEN pg_catalog.pg_notify('` + channel + `', l.key) END`

func bounded(text string, own ...sqltext.Fragments) sqltext.Bounded {
	return sqltext.NewBounded(pg.Text, text, append(own, postgresFragments, fragments)...)
}

var postgresFragments = sqltext.Fragments{
	"later":     sqltext.Func(later),
	"overtaken": sqltext.Func(func(token string) string { return sqltext.Throw(pg.Text, "'"+overtaken+"'", token) }),
}

// later is a time plus a number of microseconds, with a comma between the two.
func later(of string) string {
	time, ticks, _ := strings.Cut(of, ", ")
	return "pg_catalog.timestamptz_pl_interval(" + time + ", " + pg.Micros(ticks) + ")"
}

// probePostgres has the statement of take planned, not executed, which checks columns, types, the unique index of ON
// CONFLICT, and privileges. PgBouncer (1.21 and newer) refuses the name of a statement that it couldn't prepare before,
// so each text is different.
func probePostgres(ctx context.Context, db *database, waits bool) error {
	text, args := postgresTexts().probe, []any{"probe", newLockID(), "", int64(1), nil, false}
	if waits {
		text, args = postgresTexts().probeWait, append(args, int64(1))
	}
	return db.sendBounded(ctx, text, func(text string) error {
		return db.query(ctx, ignore, statement{text: text + " /* " + newLockID() + " */", args: args})
	})
}

// takeOnPostgres sends takePostgres, and sends it again if its snapshot was too old. If the ledger lacks the name, as
// far as the snapshot shows, takeOnPostgres first adds it.
func takeOnPostgres(ctx context.Context, db *database, r *request, o *outcome) error {
	text, args := postgresTexts().take, []any{r.key, r.lockID, r.owner, pg.Text.Ticks(r.ttl), r.session, r.refresh}
	if r.notified > 0 {
		text, args = postgresTexts().wait, append(args, pg.Text.Ticks(r.notified))
	}
	send := func() error {
		return db.sendBounded(ctx, text, func(text string) error {
			*o = outcome{committing: true, sent: time.Now()}
			return db.queryOn(ctx, o.scan, statement{text: text, args: args})
		})
	}
	for {
		err := dberr.Resend(ctx, isOvertaken, send)
		if !sqltext.IsThrown(pg.Text, err, sqltext.OldSnapshot) {
			return err
		}
		if err := db.ledger.Ensure(callerOf(ctx), r.key); err != nil {
			return err
		}
	}
}

func isOvertaken(err error) bool { return sqltext.IsThrown(pg.Text, err, overtaken) }

func takeAllOnPostgres(ctx context.Context, db *database, asked []*taking) (ok, committing bool, err error) {
	var requests []map[string]any
	byID := make(map[string]*taking, len(asked))
	for _, t := range asked {
		requests = append(requests, map[string]any{"key": t.r.key, "lock_id": t.r.lockID, "holder": t.r.owner,
			"ttl": pg.Text.Ticks(t.r.ttl)})
		byID[t.r.lockID] = t
	}
	arg := inJSON(requests)
	err = db.sendBounded(ctx, postgresTexts().takeAll, func(text string) error {
		sent := time.Now()
		ok, committing = true, true
		return db.queryOn(ctx, func(rows *sql.Rows) error {
			var lockID string
			var settled, shared bool
			var w wonRow
			o := outcome{sent: sent}
			if err := rows.Scan(append([]any{&lockID, &settled, &shared}, o.fields(&w)...)...); err != nil {
				return err
			}
			o.won = w.grant()
			ok = ok && shared
			if t := byID[lockID]; t != nil && settled {
				t.o = &o
			}
			return nil
		}, statement{text: text, args: []any{arg}})
	})
	return ok, committing, err
}

func releaseAllOnPostgres(
	ctx context.Context, db *database, all []*releasing, notify bool,
) (committing bool, _ error) {
	var requests []map[string]any
	byID := make(map[string]*releasing, len(all))
	for _, r := range all {
		requests = append(requests, map[string]any{"lock_id": r.lockID, "release": r.release})
		byID[r.lockID] = r
	}
	text := postgresTexts().releaseAll
	if notify {
		text += postgresTexts().notifying
	}
	return true, db.queryOn(ctx, func(rows *sql.Rows) error {
		var lockID, key string
		if err := rows.Scan(releaseRow(notify, &lockID, &key)...); err != nil {
			return err
		}
		byID[lockID].key = key
		return nil
	}, statement{text: text, args: []any{inJSON(requests)}})
}
