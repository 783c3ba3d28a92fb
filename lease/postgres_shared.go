package lease

import "encoding/json"

// takeAllPostgres takes the leases of many keys in one statement without waiting for a lock. It returns a row for each
// attempt: its lock id, whether the attempt is settled, whether statements can be shared, and the columns of
// takePostgres. An attempt that isn't settled is sent again by takePostgres. Argument: the requests in JSON.
//
// takeAllPostgres takes only free leases, as takePostgres does. The item asked reads the rows of the lease and the
// ledger in the snapshot. If the lease isn't live, turn takes the name's turn at the ledger, an advisory lock, if no
// other session has it. Then locked locks both rows, unless another transaction has locked one. Only then won reads the
// clock and decides again on the newest row, and ledger stores the token. Because it waits for no lock, there is no
// deadlock.
//
// If another process has a live lease, the attempt is settled. These attempts aren't settled: at a key that another
// transaction has locked, at a live lease of the same owner, and with a token out of range; and all attempts above READ
// COMMITTED, because the snapshot may be older than the locks.
const takeAllPostgres = `WITH asked AS MATERIALIZED (
	SELECT r.key, r.lock_id, r.holder, r.ttl, clock.now, clock.shared, held.lock_id AS held_id, held.holder AS held_holder, held.expires_at,
		held.key IS NOT NULL AS kept, ledger.name IS NOT NULL AS known,
		CASE WHEN ledger.token < 0 THEN ledger.token ELSE GREATEST(ledger.token, clock.floor) END AS token,
		COALESCE(held.expires_at > clock.now AND {alive held}, false) AS live
	FROM (SELECT {now} AS now, {floor} AS floor, {durable} AS durable,
		pg_catalog.starts_with(pg_catalog.current_setting('transaction_isolation'), 'read ') AS shared OFFSET 0) AS clock
	CROSS JOIN pg_catalog.json_to_recordset($1::text::json)
		AS r(key pg_catalog.text, lock_id pg_catalog.text, holder pg_catalog.text, ttl bigint)
	LEFT JOIN LATERAL (SELECT * FROM fencing_leases WHERE key = r.key OFFSET 0) AS held ON true
	LEFT JOIN LATERAL (SELECT * FROM {ledger} WHERE name = r.key OFFSET 0) AS ledger ON true
), turn AS MATERIALIZED (
	SELECT * FROM asked
	WHERE CASE WHEN shared AND NOT live AND token >= 0 AND token < {max} THEN {try key} END
), locked AS MATERIALIZED (
	SELECT turn.*, pg_catalog.int8pl(GREATEST(turn.token, l.token, t.token), 1) AS next
	FROM turn
	LEFT JOIN LATERAL (SELECT key, token FROM fencing_leases WHERE key = turn.key FOR UPDATE SKIP LOCKED) AS l ON true
	LEFT JOIN LATERAL (SELECT name, token FROM {ledger} WHERE name = turn.key FOR UPDATE SKIP LOCKED) AS t ON true
	WHERE (l.key IS NOT NULL) = turn.kept AND (t.name IS NOT NULL) = turn.known
), won AS (
	INSERT INTO fencing_leases AS l (key, lock_id, holder, token, acquired_at, expires_at)
	SELECT key, lock_id, holder, next, at, {later at, ttl}
	FROM (SELECT *, {now} AS at FROM locked OFFSET 0) AS locked
	WHERE next <= {max}
	ON CONFLICT (key) DO UPDATE SET lock_id = excluded.lock_id, holder = excluded.holder, session = NULL, ` +
	`token = excluded.token,
		acquired_at = excluded.acquired_at, expires_at = excluded.expires_at
	WHERE NOT (l.expires_at > excluded.acquired_at AND {alive l}) AND l.token < excluded.token
	RETURNING *
), ledger AS (
	INSERT INTO {ledger} AS t (name, token)
	SELECT won.key, won.token FROM won
	ON CONFLICT (name) DO UPDATE SET token = CASE
		WHEN COALESCE(t.token, 0) < excluded.token AND excluded.token <= {max} THEN excluded.token
		ELSE {overtaken t.token} END
)
SELECT asked.lock_id, won.key IS NOT NULL OR live AND held_id <> asked.lock_id AND (asked.holder = '' OR held_holder <> asked.holder), shared,
	live, true, false, asked.token, COALESCE(held_holder, ''), {micros asked.expires_at},
	{micros pg_catalog.timestamptz_mi(asked.expires_at, now)},
	won.key, won.lock_id, won.holder, won.token, {micros won.acquired_at}, {micros won.expires_at},
	false, {micros pg_catalog.timestamptz_mi(won.expires_at, pg_catalog.statement_timestamp())}
FROM asked LEFT JOIN won ON won.key = asked.key`

// releaseAllPostgres has the releases, as JSON, as its argument. See releasePostgres.
const releaseAllPostgres = `UPDATE fencing_leases AS l SET lock_id = NULL, session = NULL, holder = locked.release, expires_at = {now}
FROM (SELECT r.lock_id, r.release, l.key
	FROM pg_catalog.json_to_recordset($1::text::json)
		AS r(lock_id pg_catalog.text, release pg_catalog.text)
	CROSS JOIN LATERAL (SELECT key FROM fencing_leases ` +
	`WHERE lock_id = r.lock_id FOR UPDATE SKIP LOCKED) AS l OFFSET 0) AS locked
WHERE l.key = locked.key AND l.lock_id = locked.lock_id AND l.expires_at > {now} AND {alive l}
RETURNING locked.lock_id, l.key`

// inJSON encodes only texts and numbers, so it can't fail.
func inJSON(v []map[string]any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
