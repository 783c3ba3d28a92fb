package lease

// The times of the database are those of clock_timestamp(), read after every
// wait: now() is the transaction's start, and a lease would be shorter by the
// time that its statement waited.

const createPostgres = `CREATE TABLE IF NOT EXISTS fencing_leases (
	key         text        NOT NULL PRIMARY KEY,
	lock_id     text        UNIQUE,
	holder      text        NOT NULL,
	session     bigint,
	token       bigint      NOT NULL,
	acquired_at timestamptz NOT NULL,
	expires_at  timestamptz NOT NULL
)`

// acquirePostgres takes the lease and issues its token in one statement, which
// always returns one row: what the lease is now, NULL if it wasn't taken, and
// what was seen before. Arguments: key, lock id, owner, ttl in µs, session,
// whether to refresh.
//
// seen keeps an attempt that can't succeed from writing or waiting. It reads the
// statement's snapshot, so won decides anew, on the locked row of the lease.
//
// A lease that is free or has expired goes to the newcomer, who has to get its
// turn at the ledger first: it waits there for the transactions that have written
// under the old token. Only then the clock is read, and the ledger's row locked
// to read its newest token. A key without a row has nothing to be locked first:
// its newcomers get their turn before they add the row. ledger raises the token;
// a name whose first token somebody else issues at the same moment is not seen by
// the snapshot, and raises: the statement is undone and sent again.
const acquirePostgres = `WITH seen AS MATERIALIZED (
	SELECT clock.now, held.holder, held.expires_at, {durable} AS durable,
		CASE WHEN ledger.token < 0 THEN ledger.token ELSE GREATEST(ledger.token, {floor}) END AS token,
		COALESCE(held.expires_at > clock.now AND {held alive}, false) AS live,
		held.key IS NULL AS absent,
		CASE WHEN $5::bigint IS NULL THEN true ELSE NOT pg_try_advisory_xact_lock_shared($5::bigint) END AS session
	FROM (SELECT clock_timestamp() AS now) AS clock
	LEFT JOIN fencing_leases AS held ON held.key = $1::text
	LEFT JOIN fencing_tokens AS ledger ON ledger.name = $1::text
), won AS (
	INSERT INTO fencing_leases AS l (key, lock_id, holder, session, token, acquired_at, expires_at)
	SELECT $1::text, $2::text, $3::text, $5::bigint, seen.token + 1, clock.now, clock.now + $4::bigint * interval '1 microsecond'
	FROM seen, LATERAL (SELECT clock_timestamp() AS now FROM (SELECT CASE WHEN seen.absent
		THEN {turn $1::text} END OFFSET 0) AS turn OFFSET 0) AS clock
	WHERE seen.session AND CASE WHEN seen.live THEN $3::text <> '' AND seen.holder = $3::text ELSE seen.token BETWEEN 0 AND {max} - 1 AND {seen} END
	ON CONFLICT (key) DO UPDATE SET (lock_id, holder, session, token, acquired_at, expires_at) = (
		SELECT
			CASE WHEN same THEN l.lock_id ELSE excluded.lock_id END,
			excluded.holder,
			CASE WHEN same THEN l.session ELSE excluded.session END,
			CASE WHEN same THEN l.token ELSE 1 + GREATEST(l.token, excluded.token - 1,
				(SELECT token FROM fencing_tokens WHERE name = l.key FOR UPDATE)) END,
			CASE WHEN same THEN l.acquired_at ELSE now END,
			CASE WHEN same AND NOT $6::boolean THEN l.expires_at ELSE now + $4::bigint * interval '1 microsecond' END
		FROM (SELECT now, $3::text <> '' AND l.holder = $3::text AND l.expires_at > now AND {l alive} AS same
			FROM (SELECT clock_timestamp() AS now) AS clock OFFSET 0) AS m)
	WHERE CASE WHEN l.expires_at > clock_timestamp() AND {l alive} THEN $3::text <> '' AND l.holder = $3::text
		ELSE (SELECT {turn l.key}) IS NOT NULL END
	RETURNING *
), ledger AS (
	INSERT INTO fencing_tokens AS t (name, token)
	SELECT won.key, won.token FROM won,
		LATERAL (SELECT {turn won.key} OFFSET 0) AS turn
	WHERE won.lock_id = $2::text
	ON CONFLICT (name) DO UPDATE SET token = CASE
		WHEN COALESCE(t.token, 0) < excluded.token AND excluded.token <= {max} THEN excluded.token
		ELSE {overtaken} END
)
SELECT seen.live, seen.session, seen.token, COALESCE(seen.holder, ''), {µs seen.expires_at}, {µs seen.expires_at - seen.now},
	won.key, won.lock_id, won.holder, won.token, {µs won.acquired_at}, {µs won.expires_at},
	won.session IS NOT NULL, {µs won.expires_at - statement_timestamp()}
FROM seen LEFT JOIN won ON true`

// extendPostgres: lock id, ttl in µs. The row is locked before the clock is read,
// or an expired lease could come back to life after a wait.
const extendPostgres = `UPDATE fencing_leases AS l SET expires_at = n.now + $2::bigint * interval '1 microsecond'
FROM (SELECT key, clock_timestamp() AS now, {durable} AS durable FROM (SELECT key FROM fencing_leases WHERE lock_id = $1::text FOR UPDATE) AS locked) AS n
WHERE l.key = n.key AND l.lock_id = $1::text AND l.expires_at > n.now AND {l alive}
RETURNING {µs l.expires_at}, {µs l.expires_at - statement_timestamp()}`

// releasePostgres: lock id. The key comes back.
const releasePostgres = `UPDATE fencing_leases AS l SET lock_id = NULL, session = NULL, expires_at = clock_timestamp()
WHERE lock_id = $1::text AND expires_at > clock_timestamp() AND {l alive}
RETURNING key`

// notifyPostgres is releasePostgres that also wakes who waits.
const notifyPostgres = releasePostgres + `, pg_notify('` + channel + `', key)`

// undoPostgres: key, lock id. It releases what an attempt may have taken whose
// outcome is unknown. As an upsert it waits also for an attempt that is still
// adding the row.
const undoPostgres = `INSERT INTO fencing_leases AS l (key, holder, token, acquired_at, expires_at)
VALUES ($1::text, '', 0, clock_timestamp(), clock_timestamp())
ON CONFLICT (key) DO UPDATE SET lock_id = NULL, session = NULL, expires_at = clock_timestamp()
WHERE l.lock_id = $2::text`

// listPostgres is followed by a condition.
const listPostgres = `SELECT key, lock_id, holder, token, {µs acquired_at}, {µs expires_at}, session IS NOT NULL
FROM fencing_leases AS l
WHERE lock_id IS NOT NULL AND expires_at > clock_timestamp() AND {l alive}`

// sweepPostgres removes what is left of leases that have ended.
const sweepPostgres = `DELETE FROM fencing_leases AS l WHERE expires_at <= clock_timestamp() OR NOT {l alive}`
