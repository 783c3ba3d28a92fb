package lease

// SQLite runs in the process, and those who share a file share a machine: its
// clock is the server's. Within one statement it stands still, and it is read
// after the wait for the file's one writer. Times are in ms since 1970; julianday
// counts ms, and is rounded because it is a float.

const createSQLite = `CREATE TABLE IF NOT EXISTS fencing_leases (
	key         text    NOT NULL PRIMARY KEY,
	lock_id     text    UNIQUE,
	holder      text    NOT NULL,
	token       bigint  NOT NULL,
	acquired_at integer NOT NULL,
	expires_at  integer NOT NULL
)`

// takeSQLite takes a lease that is free or has expired. Arguments: key, lock id,
// owner, ttl in µs; each stands once and in order, because drivers differ in how
// they count them. No row comes back if the lease is held or there is no token.
const takeSQLite = `INSERT INTO fencing_leases (key, lock_id, holder, token, acquired_at, expires_at)
SELECT r.key, r.lock_id, r.holder, max(COALESCE(t.token, 0), r.floor) + 1, r.now, r.now + (r.ttl + 999) / 1000
FROM (SELECT ? AS key, ? AS lock_id, ? AS holder, ? AS ttl, {now} AS now, {floor} AS floor) AS r
LEFT JOIN fencing_tokens AS t ON t.name = r.key
WHERE COALESCE(t.token, 0) BETWEEN 0 AND {max} - 1 AND r.floor < {max}
ON CONFLICT (key) DO UPDATE SET lock_id = excluded.lock_id, holder = excluded.holder,
	token = max(fencing_leases.token + 1, excluded.token),
	acquired_at = excluded.acquired_at, expires_at = excluded.expires_at
WHERE fencing_leases.expires_at <= excluded.acquired_at AND fencing_leases.token < {max}
RETURNING key, lock_id, holder, token, acquired_at * 1000, expires_at * 1000, 0, (expires_at - {now}) * 1000`

// ledgerSQLite: name, token. It comes after takeSQLite in its transaction.
const ledgerSQLite = `INSERT INTO fencing_tokens (name, token) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET token = excluded.token`

// seenSQLite: key. It comes after takeSQLite in its transaction if that gave
// no row.
const seenSQLite = `SELECT COALESCE(l.expires_at > {now}, 0), 1, CASE WHEN t.token < 0 THEN t.token ELSE max(COALESCE(t.token, 0), {floor}) END, COALESCE(l.holder, ''),
	l.expires_at * 1000, (l.expires_at - {now}) * 1000,
	l.key, l.lock_id, l.holder, l.token, l.acquired_at * 1000, l.expires_at * 1000, 0, (l.expires_at - {now}) * 1000
FROM (SELECT ? AS key) AS r
LEFT JOIN fencing_leases AS l ON l.key = r.key
LEFT JOIN fencing_tokens AS t ON t.name = r.key`

// extendSQLite: ttl in µs, lock id.
const extendSQLite = `UPDATE fencing_leases SET expires_at = {now} + (? + 999) / 1000
WHERE lock_id = ? AND expires_at > {now}
RETURNING expires_at * 1000, (expires_at - {now}) * 1000`

const releaseSQLite = `UPDATE fencing_leases SET lock_id = NULL, expires_at = {now}
WHERE lock_id = ? AND expires_at > {now}
RETURNING key`

const undoSQLite = `UPDATE fencing_leases SET lock_id = NULL, expires_at = {now} WHERE key = ? AND lock_id = ?`

const listSQLite = `SELECT key, lock_id, holder, token, acquired_at * 1000, expires_at * 1000, 0
FROM fencing_leases
WHERE lock_id IS NOT NULL AND expires_at > {now}`

const sweepSQLite = `DELETE FROM fencing_leases WHERE expires_at <= {now}`
