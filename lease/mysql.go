package lease

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence"
	my "github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/stop"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// mysql is the dialect of MySQL and MariaDB. The clock stands still during a statement, so a time that must be later
// than a wait for a lock is read by a later statement. Values are constants in the texts: arguments would take another
// round trip, and be in the session's character set. A session with autocommit = 0 would commit nothing and read the
// same rows for ever. So a statement that is sent without a transaction does nothing in such a session, because of the
// condition aloneMySQL, and is then sent in a transaction. On TiDB every statement about a live lease is sent in one.
var mysql = sync.OnceValue(func() *dialect {
	return &dialect{
		Dialect: my.Text, server: my.Session,
		create:      createMySQL,
		createIndex: "CREATE INDEX fencing_leases_expires_at ON fencing_leases (expires_at)",
		hasIndex: render(my.Text, `SELECT 1 FROM information_schema.statistics
WHERE table_schema = DATABASE() AND table_name = _utf8mb4'fencing_leases' AND column_name = _utf8mb4'expires_at' `+
			`AND seq_in_index = 1`),
		probe:   probeMySQL,
		take:    takeOnMySQL,
		undo:    undoOnMySQL,
		extend:  extendOnMySQL,
		release: releaseOnMySQL,
		released: func(release string) statement {
			return texts(constants(map[string]string{"release": release}),
				"SELECT {column} FROM fencing_leases WHERE lock_id IS NULL AND holder = {release} "+
					"OR lock_id = {release}")
		},
		list: func(column, value string) statement {
			if column == "" {
				return texts(nil, listMySQL+" ORDER BY l.{column}")
			}
			return texts(constants(map[string]string{"value": value}),
				listMySQL+" AND l."+my.Text.Quote(column)+" = {value}")
		},
		ended: func(lockID string) statement {
			return texts(constants(map[string]string{"lock": lockID}),
				"SELECT 1 FROM fencing_leases WHERE lock_id = {lock}")
		},
		sweep: texts(nil, "DELETE FROM fencing_leases WHERE expires_at <= {now} OR NOT {alive fencing_leases}"),
		// The server drops a GET_LOCK when the session ends. In a cluster no server sees another's locks, so sessions
		// can't be used there ([ErrNoSessions]). ProxySQL recognizes GET_LOCK, and doesn't share such a session.
		session: func(id int64) (lock, unlock statement) {
			name := my.SessionLock(strconv.FormatInt(id, 10))
			return statement{text: "SELECT GET_LOCK(" + name + ", 10)"},
				statement{text: "SELECT RELEASE_LOCK(" + name + ")"}
		},
	}
})

// createMySQL creates the table. Keys and lock ids are compared byte by byte. Times are in µs since 1970. The index is
// part of the table, because MySQL has no CREATE INDEX IF NOT EXISTS.
const createMySQL = "CREATE TABLE IF NOT EXISTS fencing_leases (\n" +
	"\t`key`       varbinary(512) NOT NULL PRIMARY KEY,\n" +
	"\tlock_id     varbinary(22)  UNIQUE,\n" +
	"\tholder      varbinary(512) NOT NULL,\n" +
	"\tsession     bigint,\n" +
	"\ttoken       bigint         NOT NULL,\n" +
	"\tacquired_at bigint         NOT NULL,\n" +
	"\texpires_at  bigint         NOT NULL,\n" +
	"\tKEY fencing_leases_expires_at (expires_at)\n" +
	") ENGINE=InnoDB"

// stateMySQL reads, without locks, the state that an attempt finds: the columns of an [outcome], with the key's lease
// of any holder; then whether the lease and the ledger have a row, and whether the session is in autocommit mode.
const stateMySQL = `SELECT COALESCE(l.lock_id IS NOT NULL AND l.expires_at > {now} ` +
	`AND {alive l}, FALSE), {session}, FALSE,
	CASE WHEN t.token < 0 THEN t.token ELSE GREATEST(COALESCE(t.token, 0), {start}) END, COALESCE(l.holder, {empty}),
	l.expires_at, l.expires_at - {now},
	l.{column}, l.lock_id, l.holder, l.token, l.acquired_at, l.expires_at, l.session IS NOT NULL, l.expires_at - {now},
	l.{column} IS NOT NULL, t.name IS NOT NULL, ` + my.CommitsAlone + `
FROM (SELECT {key} AS name) AS r
LEFT JOIN fencing_leases AS l ON l.{column} = r.name
LEFT JOIN {ledger} AS t ON t.name = r.name`

// lockMySQL waits for transactions that wrote under the old token, and for other attempts to take the lease. It returns
// the key's highest token.
const lockMySQL = `SELECT GREATEST(COALESCE(t.token, 0), {start}, COALESCE((SELECT l.token ` +
	`FROM fencing_leases AS l WHERE l.{column} = {key}), 0)), t.token
FROM {ledger} AS t WHERE t.name = {key} FOR UPDATE`

// takeMySQL takes the lease if it is free or has expired. It follows lockMySQL. LAST_INSERT_ID is then the time at
// which the lease began.
const takeMySQL = `UPDATE fencing_leases AS l JOIN {ledger} AS t ON t.name = l.{column}
SET l.lock_id = {lock}, l.holder = {holder}, l.session = {number}, l.token = {token}, t.token = {token},
	l.acquired_at = LAST_INSERT_ID({now}), l.expires_at = {after {ttl}}
WHERE l.{column} = {key} AND (l.lock_id IS NULL OR l.expires_at <= {now} OR NOT {alive l})`

// addMySQL adds an ended lease, so that there is a row to lock: sessions that lock a missing row and then insert the
// row deadlock.
const addMySQL = `INSERT INTO fencing_leases ({column}, holder, token, acquired_at, expires_at) VALUES ` +
	`({key}, {empty}, 0, 0, 0)
ON DUPLICATE KEY UPDATE token = token`

// listMySQL reads the time from a table with one row, because MySQL uses the index only with a constant time.
const listMySQL = `SELECT l.{column}, l.lock_id, l.holder, l.token, l.acquired_at, l.expires_at, l.session IS NOT NULL
FROM (SELECT {now} AS now LIMIT 1) AS n JOIN fencing_leases AS l ON l.expires_at > n.now
WHERE l.lock_id IS NOT NULL AND {alive l}`

var mysqlFragments = sqltext.Fragments{"column": sqltext.Raw("`key`")}

// constants returns pieces with texts as SQL constants.
func constants(texts map[string]string) sqltext.Fragments {
	p := make(sqltext.Fragments, len(texts))
	for name, text := range texts {
		p[name] = sqltext.Raw(my.Text.Text(text))
	}
	return p
}

func number(n int64) sqltext.Fragment { return sqltext.Raw(strconv.FormatInt(n, 10)) }

// atDefault sets no isolation level, because none can be set in an open transaction.
var atDefault = &sql.TxOptions{}

// texts returns a statement that sends all texts in one transaction. The last text returns the result.
func texts(p sqltext.Fragments, all ...string) statement {
	s := statement{tx: atDefault}
	for i, text := range all {
		text = render(my.Text, text, p, mysqlFragments)
		if i < len(all)-1 {
			s.before = append(s.before, text)
			continue
		}
		s.text = text
	}
	return s
}

// noKey is a key that no lease has, because names contain no NUL.
const noKey = "\x00"

// probeMySQL sends EXPLAIN of take's UPDATE, which fails if a table, a column or a privilege is missing. A second query
// finds wrong types and engines. Because planning locks the key's rows, the key is noKey, which no lease has.
func probeMySQL(ctx context.Context, db *database, _ bool) error {
	p := constants(map[string]string{"key": noKey, "lock": "", "holder": ""})
	p["number"], p["token"], p["ttl"] = number(0), number(0), number(0)
	if err := db.query(ctx, ignore, texts(p, "EXPLAIN "+takeMySQL)); err != nil {
		return err
	}
	var fault sql.NullString
	unfit := my.Unfit("fencing_leases", []my.Column{
		{Name: "key", Bytes: 512}, {Name: "lock_id", Bytes: 22}, {Name: "holder", Bytes: 512},
		{Name: "session"}, {Name: "token"}, {Name: "acquired_at"}, {Name: "expires_at"},
	}, "key", "lock_id")
	err := db.query(ctx, func(rows *sql.Rows) error { return rows.Scan(&fault) }, statement{text: unfit})
	if err == nil && fault.Valid {
		err = errors.New(fault.String)
	}
	return err
}

// takeOnMySQL first reads the state without locks, so that an attempt at a live lease waits for nothing: a session that
// waits for the ledger's row holds up writers under the holder's token.
func takeOnMySQL(ctx context.Context, db *database, r *request, o *outcome) error {
	p := r.fragments()
	for {
		rows, err := look(ctx, db, r, p, o)
		switch {
		case err != nil:
			return err
		case o.live:
			if o.won == nil || !r.refresh || o.won.LockID == r.lockID {
				return nil
			}
			if err := refresh(ctx, db, r, o); err != nil || o.won != nil {
				return err
			}
			continue // the resumed lease has just ended
		case !o.session.Bool || o.token < 0 || o.token >= sqlfence.MaxToken:
			return nil
		}
		if err := rows.add(ctx, db, r.key, p); err != nil {
			return err
		}
		if err := takeFree(ctx, db, r, p, o); err != nil || o.won != nil {
			return err
		}
	}
}

// fragments returns the values of a request for the statements of takeOnMySQL.
func (r *request) fragments() sqltext.Fragments {
	p := constants(map[string]string{"key": r.key, "lock": r.lockID, "holder": r.owner})
	p["session"], p["number"], p["ttl"] = sqltext.Raw("TRUE"), sqltext.Raw("NULL"), number(my.Text.Ticks(r.ttl))
	if r.session.Valid {
		p["number"] = number(r.session.Int64)
		p["session"] = sqltext.Raw("IS_USED_LOCK(" + my.SessionLock(strconv.FormatInt(r.session.Int64, 10)) +
			") IS NOT NULL")
	}
	return p
}

// existingRows reports which tables have a row for a key.
type existingRows struct{ lease, ledger bool }

func (k existingRows) add(ctx context.Context, db *database, key string, p sqltext.Fragments) error {
	if !k.ledger {
		if err := db.ledger.Ensure(callerOf(ctx), key); err != nil {
			return err
		}
	}
	if k.lease {
		return nil
	}
	_, err := db.exec(callerOf(ctx), texts(p, addMySQL))
	return err
}

// look reads the state of a key. The outcome has a lease if the same attempt, sent before, has taken it, or if the
// lease is resumed. look then reads the lease again with a lock, because at READ UNCOMMITTED it may not be committed.
func look(
	ctx context.Context, db *database, r *request, p sqltext.Fragments, o *outcome,
) (found existingRows, err error) {
	var tx *sql.TxOptions
	var commits, mine bool
	read := func(lock string) error {
		s := texts(p, stateMySQL)
		s.text, s.tx = s.text+lock, tx
		*o = outcome{sent: time.Now()}
		err := db.queryOn(ctx, func(rows *sql.Rows) error {
			var w wonRow
			err := rows.Scan(append(o.fields(&w), &found.lease, &found.ledger, &commits)...)
			o.won = w.grant()
			return err
		}, s)
		if mine = o.live && o.won != nil && (o.won.LockID == r.lockID || r.owner != "" && o.holder == r.owner); !mine {
			o.won = nil
		}
		return err
	}
	if err = read(""); err == nil && !commits {
		tx = atDefault
		err = read("")
	}
	if err == nil && mine {
		err = my.ShareLock(read)
	}
	return found, err
}

// refresh extends the resumed lease in o.won, and sets o.won to nil if the lease has ended.
func refresh(ctx context.Context, db *database, r *request, o *outcome) error {
	held := o.won
	o.won = nil
	return db.queryOn(ctx, func(rows *sql.Rows) (err error) {
		held.ExpiresAt, held.left, err = scanTimes(rows)
		o.won = held
		return err
	}, extendOnMySQL(held.LockID, r.ttl))
}

// takeFree takes the lease unless another process has taken it meanwhile.
func takeFree(ctx context.Context, db *database, r *request, p sqltext.Fragments, o *outcome) error {
	conn, err := db.conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, atDefault)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var token int64
	var stored sql.NullInt64
	err = stop.Abandoned(ctx, db.cleanup, render(my.Text, lockMySQL, p, mysqlFragments), func(text string) error {
		return tx.QueryRowContext(trusted.Context(ctx, text), text).Scan(&token, &stored)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	case stored.Int64 < 0 || token >= sqlfence.MaxToken:
		return nil
	}
	p["token"] = number(token + 1)
	o.sent = time.Now() // the lease begins with this statement
	text := render(my.Text, takeMySQL, p, mysqlFragments)
	result, err := tx.ExecContext(trusted.Context(ctx, text), text)
	if err != nil {
		return err
	}
	began, err := since(ctx, tx, result)
	if err != nil || began == 0 {
		return err
	}
	o.committing = true
	if err := tx.Commit(); err != nil {
		return err
	}
	o.won = r.granted(token+1, began)
	return nil
}

// since returns the LAST_INSERT_ID of takeMySQL, or 0 if takeMySQL took no lease: a server that evaluates a statement
// again may have set the ID before. If a trigger has inserted a row, the response lacks the ID, but the session has it.
func since(ctx context.Context, tx *sql.Tx, result sql.Result) (at int64, err error) {
	rows, err := result.RowsAffected()
	if rows == 0 || err != nil {
		return 0, err
	}
	if at, err = result.LastInsertId(); at != 0 || err != nil {
		return at, err
	}
	text := render(my.Text, "SELECT LAST_INSERT_ID()")
	err = tx.QueryRowContext(trusted.Context(ctx, text), text).Scan(&at)
	return at, err
}

// granted returns the lease of a request that was granted at a time in µs.
func (r *request) granted(token, began int64) *grant {
	ttl := time.Duration(my.Text.Ticks(r.ttl)) * time.Microsecond
	at := time.UnixMicro(began)
	return &grant{
		Info: Info{
			Key: r.key, LockID: r.lockID, Holder: shown(r.owner), Token: sqlfence.Token{Name: r.key, Value: token},
			AcquiredAt: at, ExpiresAt: at.Add(ttl), Ephemeral: r.session.Valid,
		},
		left: ttl,
	}
}
