package lease

import (
	"context"
	"database/sql"
	"sync"
	"time"

	lite "github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// sqlite is the dialect of SQLite, with times in ms since 1970. Its statements use each argument once, in order,
// because drivers number repeated placeholders in different ways. Leases have no sessions, because no server notices
// that a holder has died.
var sqlite = sync.OnceValue(func() *dialect {
	texts := sqliteTexts()
	return &dialect{
		Dialect: lite.Text, server: lite.Session,
		create: createSQLite, createIndex: createIndex,
		hasIndex: `SELECT 1 FROM pragma_index_list('fencing_leases') WHERE name = 'fencing_leases_expires_at'`,
		// EXPLAIN prepares the statement without executing it.
		probe: func(ctx context.Context, db *database, _ bool) error {
			return db.query(ctx, ignore, statement{text: "EXPLAIN " + texts.take,
				args: []any{"probe", newLockID(), "", int64(1)}})
		},
		writers:    1, // a second statement would wait for the file by sleeping
		take:       takeOnSQLite,
		takeAll:    takeAllOnSQLite,
		releaseAll: releaseAllOnSQLite,
		undo: func(key, lockID string) statement {
			return statement{text: texts.undo, args: []any{key, lockID}}
		},
		extend:  extendOnSQLite,
		release: releaseOnSQLite,
		released: func(release string) statement {
			return statement{text: "SELECT key FROM fencing_leases, (SELECT ? AS release) AS r WHERE lock_id IS NULL " +
				"AND holder = r.release OR lock_id = r.release", args: []any{release}}
		},
		list: func(column, value string) statement {
			if column == "" {
				// An expression has no index: SQLite would rather read all keys in their order.
				return statement{text: texts.list + " ORDER BY key || ''"}
			}
			return statement{text: texts.list + " AND " + column + " = ?", args: []any{value}}
		},
		ended: func(lockID string) statement {
			return statement{text: "SELECT 1 FROM fencing_leases WHERE lock_id = ?", args: []any{lockID}}
		},
		sweep: statement{text: texts.sweep},
	}
})

const createSQLite = `CREATE TABLE IF NOT EXISTS fencing_leases (
	key         text    NOT NULL PRIMARY KEY,
	lock_id     text    UNIQUE,
	holder      text    NOT NULL,
	token       bigint  NOT NULL,
	acquired_at integer NOT NULL,
	expires_at  integer NOT NULL
)`

// takeSQLite takes a lease that is free or has expired. Arguments: key, lock id, owner, ttl in ms. It returns no row if
// the lease is held or the key has no token left.
const takeSQLite = `INSERT INTO fencing_leases (key, lock_id, holder, token, acquired_at, expires_at)
SELECT r.key, r.lock_id, r.holder, max(COALESCE(t.token, 0), r.floor) + 1, r.now, r.now + r.ttl
FROM (SELECT ? AS key, ? AS lock_id, ? AS holder, ? AS ttl, {now} AS now, {floor} AS floor) AS r
LEFT JOIN {ledger} AS t ON t.name = r.key
WHERE COALESCE(t.token, 0) BETWEEN 0 AND {max} - 1 AND r.floor < {max}
ON CONFLICT (key) DO UPDATE SET lock_id = excluded.lock_id, holder = excluded.holder,
	token = max(fencing_leases.token + 1, excluded.token),
	acquired_at = excluded.acquired_at, expires_at = excluded.expires_at
WHERE fencing_leases.expires_at <= excluded.acquired_at AND fencing_leases.token < {max}
RETURNING key, lock_id, holder, token, {micros acquired_at}, {micros expires_at}, 0, {micros expires_at - {now}}`

// issueSQLite has the arguments name and token. It follows takeSQLite in its transaction.
const issueSQLite = `INSERT INTO {ledger} (name, token) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET token = excluded.token`

// stateSQLite has the argument key. It is sent in the same transaction after a takeSQLite that has returned no row.
const stateSQLite = `SELECT COALESCE(l.expires_at > {now}, 0), 1, 0,
	CASE WHEN t.token < 0 THEN t.token ELSE max(COALESCE(t.token, 0), {floor}) END, COALESCE(l.holder, ''),
	{micros l.expires_at}, {micros l.expires_at - {now}},
	l.key, l.lock_id, l.holder, l.token, {micros l.acquired_at}, {micros l.expires_at}, 0, {micros l.expires_at - {now}}
FROM (SELECT ? AS key) AS r
LEFT JOIN fencing_leases AS l ON l.key = r.key
LEFT JOIN {ledger} AS t ON t.name = r.key`

// extendSQLite has the arguments ttl in ms and lock id.
const extendSQLite = `UPDATE fencing_leases SET expires_at = {after ?}
WHERE lock_id = ? AND expires_at > {now}
RETURNING {micros expires_at}, {micros expires_at - {now}}`

// releaseSQLite has the arguments release and lock id.
const releaseSQLite = `UPDATE fencing_leases SET lock_id = NULL, holder = ?, expires_at = {now}
WHERE lock_id = ? AND expires_at > {now}
RETURNING key`

// holdSQLite releases a lease with [MinHold]. Its arguments are release, the time hold in ms, and the lock id.
const holdSQLite = `UPDATE fencing_leases AS l SET lock_id = CASE WHEN l.acquired_at + r.hold > r.now THEN r.release END,
	holder = CASE WHEN l.acquired_at + r.hold > r.now THEN '' ELSE r.release END, expires_at = max(l.acquired_at + r.hold, r.now)
FROM (SELECT ? AS release, ? AS hold, {now} AS now) AS r
WHERE l.lock_id = ? AND l.expires_at > r.now
RETURNING key`

const undoSQLite = `UPDATE fencing_leases SET lock_id = NULL, expires_at = {now} WHERE key = ? AND lock_id = ?`

// listSQLite ends with a condition, so that callers can append AND or ORDER BY.
const listSQLite = `SELECT key, lock_id, holder, token, {micros acquired_at}, {micros expires_at}, 0
FROM fencing_leases AS l WHERE {live l}`

const sweepSQLite = `DELETE FROM fencing_leases WHERE expires_at <= {now}`

var sqliteTexts = sync.OnceValue(func() (t struct {
	take, issue, seen, extend, release, hold, undo, list, sweep string
}) {
	text := func(text string) string { return render(lite.Text, text) }
	t.take, t.issue, t.seen = text(takeSQLite), text(issueSQLite), text(stateSQLite)
	t.extend, t.release, t.hold = text(extendSQLite), text(releaseSQLite), text(holdSQLite)
	t.undo, t.list, t.sweep = text(undoSQLite), text(listSQLite), text(sweepSQLite)
	return t
})

// takeOnSQLite is a transaction, because no statement writes to two tables. It begins with a write, and so is the
// file's writer.
func takeOnSQLite(ctx context.Context, db *database, r *request, o *outcome) error {
	conn, err := db.conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	o.sent = time.Now()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := takeInTx(ctx, tx, r, o); err != nil {
		return err
	}
	if o.won != nil {
		o.committing = true
		return tx.Commit()
	}
	if err := queryOnce(ctx, tx, o.scan, statement{text: sqliteTexts().seen, args: []any{r.key}}); err != nil {
		return err
	}
	own := o.won != nil && o.won.LockID == r.lockID // taken when the same attempt was sent before
	if !o.live || !own && (r.owner == "" || o.holder != r.owner) {
		o.won = nil
		return nil
	}
	if r.refresh && !own {
		scan := func(rows *sql.Rows) (err error) {
			o.won.ExpiresAt, o.won.left, err = scanTimes(rows)
			return err
		}
		if err := queryOnce(ctx, tx, scan, extendOnSQLite(o.won.LockID, r.ttl)); err != nil {
			return err
		}
	}
	o.committing = true
	return tx.Commit()
}

// takeAllOnSQLite settles the leases that it takes.
func takeAllOnSQLite(ctx context.Context, db *database, asked []*taking) (ok, committing bool, _ error) {
	conn, err := db.conn(ctx)
	if err != nil {
		return true, false, err
	}
	defer conn.Close()
	sent := time.Now()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return true, false, err
	}
	defer tx.Rollback()
	for _, t := range asked {
		o := outcome{sent: sent}
		if err := takeInTx(ctx, tx, t.r, &o); err != nil {
			return true, false, err
		}
		if o.won != nil {
			t.o = &o
		}
	}
	return true, true, tx.Commit()
}

func takeInTx(ctx context.Context, tx *sql.Tx, r *request, o *outcome) error {
	take := statement{text: sqliteTexts().take, args: []any{r.key, r.lockID, r.owner, lite.Text.Ticks(r.ttl)}}
	if err := queryOnce(ctx, tx, o.scanWon, take); err != nil || o.won == nil {
		return err
	}
	_, err := tx.ExecContext(trusted.Context(ctx, sqliteTexts().issue), sqliteTexts().issue, r.key, o.won.Token.Value)
	return err
}

func releaseAllOnSQLite(ctx context.Context, db *database, all []*releasing, notify bool) (committing bool, _ error) {
	conn, err := db.conn(ctx) // on which package sql sends once
	if err != nil {
		return false, err
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	for _, r := range all {
		scan := func(rows *sql.Rows) error { return rows.Scan(releaseRow(notify, &r.key)...) }
		if err := queryOnce(ctx, tx, scan, releaseOnSQLite(r.lockID, r.release, r.hold, notify)); err != nil {
			return false, err
		}
	}
	return true, tx.Commit()
}

func extendOnSQLite(lockID string, ttl time.Duration) statement {
	return statement{text: sqliteTexts().extend, args: []any{lite.Text.Ticks(ttl), lockID}}
}

func releaseOnSQLite(lockID, release string, hold time.Duration, _ bool) statement {
	if hold > 0 {
		return statement{text: sqliteTexts().hold, args: []any{release, lite.Text.Ticks(hold), lockID}}
	}
	return statement{text: sqliteTexts().release, args: []any{release, lockID}}
}
