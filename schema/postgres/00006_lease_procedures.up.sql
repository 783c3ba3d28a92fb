-- +goose Up
-- +goose StatementBegin
DO $install$
DECLARE
	home text;
	path text;
BEGIN
	PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('sqlfence-install', 0));
	SELECT pg_catalog.quote_ident(n.nspname) INTO home
	FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
	WHERE c.oid = pg_catalog.to_regclass('fencing_tokens') AND c.relpersistence <> 't';
	IF home IS NULL THEN
		RAISE EXCEPTION 'sqlfence: there is no table fencing_tokens' USING ERRCODE = 'undefined_table';
	END IF;
	path := pg_catalog.concat('pg_catalog, ', home, ', pg_temp');

	EXECUTE pg_catalog.format($create$
CREATE OR REPLACE PROCEDURE %1$s.sqlfence_lease_acquire(IN key text, IN owner text, IN seconds double precision, INOUT lock_id text DEFAULT NULL::text, INOUT token bigint DEFAULT NULL::bigint, INOUT expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, INOUT holder text DEFAULT NULL::text)
LANGUAGE plpgsql SECURITY INVOKER AS $procedure$
DECLARE
	own text := pg_catalog.translate(pg_catalog.rtrim(pg_catalog.encode(
		pg_catalog.uuid_send(pg_catalog.gen_random_uuid()), 'base64'), '='), '+/', '-_');
	live boolean;
	newest bigint;
	until bigint;
	ends bigint;
	skipped text;
BEGIN
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	PERFORM pg_catalog.set_config('search_path', %2$L, true);
	IF octet_length(key) <> char_length(key) THEN
		key := pg_catalog."normalize"(key, 'NFC');
	END IF;
	IF COALESCE(key IN ('', 'sqlfence:floor'), true) OR octet_length(convert_to(key, 'UTF8')) > 512 THEN
		RAISE EXCEPTION 'sqlfence: a token''s name has 1 to 512 bytes, and isn''t that of the ledger''s floor'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF (seconds BETWEEN 0.001 AND 86400) IS NOT TRUE THEN
		RAISE EXCEPTION 'sqlfence: a lease lives for 0.001 to 86400 seconds, not %%', seconds
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	owner := COALESCE(owner, '');
	IF octet_length(convert_to(owner, 'UTF8')) > 512 THEN
		RAISE EXCEPTION 'sqlfence: an owner''s name has at most 512 bytes' USING ERRCODE = 'invalid_parameter_value';
	END IF;
	LOOP
		BEGIN
			EXECUTE $statement$WITH seen AS MATERIALIZED (
	SELECT clock.now, held.holder, held.session AS held_session, held.token AS held_token, held.acquired_at, held.expires_at,
		CASE WHEN pg_catalog.current_setting('synchronous_commit') = 'off' THEN pg_catalog.set_config('synchronous_commit', 'on', true) END AS durable,
		CASE WHEN ledger.token < 0 THEN ledger.token ELSE GREATEST(ledger.token, GREATEST(COALESCE((SELECT token FROM fencing_tokens WHERE name = ''), 0) + (SELECT LEAST(t.n, 90000) * 10000000000 + LEAST(t.n, 1) * LEAST(GREATEST((extract(epoch FROM pg_catalog.statement_timestamp()) * 10)::bigint - 17672256000, 0), 9999999999) FROM (SELECT ('x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::bigint - 1 AS n OFFSET 0) AS t), COALESCE((SELECT token FROM fencing_tokens WHERE name = 'sqlfence:floor'), 0))) END AS token,
		COALESCE(held.expires_at > clock.now AND CASE WHEN held.session IS NULL OR NOT pg_try_advisory_xact_lock_shared(held.session) THEN true ELSE EXISTS (SELECT FROM pg_catalog.pg_locks AS k JOIN pg_catalog.pg_database AS d ON d.oid = k.database
		WHERE k.locktype = 'advisory' AND k.mode = 'ExclusiveLock' AND k.granted AND k.pid = pg_catalog.pg_backend_pid()
			AND d.datname = pg_catalog.current_database() AND k.objsubid = 1
			AND (k.classid::bigint << 32 | k.objid::bigint) = held.session) END, false) AS live,
		COALESCE(held.lock_id = $2::text, false) AS own, false AS marked,
		CASE WHEN $5::bigint IS NULL OR NOT pg_try_advisory_xact_lock_shared($5::bigint) THEN true WHEN NOT EXISTS (SELECT FROM pg_catalog.pg_locks AS k JOIN pg_catalog.pg_database AS d ON d.oid = k.database
		WHERE k.locktype = 'advisory' AND k.mode = 'ExclusiveLock' AND k.granted AND k.pid = pg_catalog.pg_backend_pid()
			AND d.datname = pg_catalog.current_database() AND k.objsubid = 1
			AND (k.classid::bigint << 32 | k.objid::bigint) = $5::bigint) THEN false END AS session
	FROM (SELECT pg_catalog.clock_timestamp() AS now) AS clock
	LEFT JOIN fencing_leases AS held ON held.key = $1::text
	LEFT JOIN fencing_tokens AS ledger ON ledger.name = $1::text
), won AS (
	INSERT INTO fencing_leases AS l (key, lock_id, holder, session, token, acquired_at, expires_at)
	SELECT $1::text, $2::text, $3::text, $5::bigint, seen.token + 1, clock.now, clock.now + $4::bigint * interval '1 microsecond'
	FROM seen, LATERAL (SELECT pg_catalog.clock_timestamp() AS now FROM (SELECT CASE WHEN NOT seen.live
		THEN pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(pg_catalog.concat('sqlfence:', $1::text), 0)) END OFFSET 0) AS turn OFFSET 0) AS clock
	WHERE seen.session AND CASE WHEN seen.live THEN NOT seen.own AND $3::text <> '' AND seen.holder = $3::text
		ELSE seen.token BETWEEN 0 AND 900000000000000 - 1 AND true END
	ON CONFLICT (key) DO UPDATE SET (lock_id, holder, session, token, acquired_at, expires_at) = (
		SELECT
			CASE WHEN same THEN l.lock_id ELSE excluded.lock_id END,
			excluded.holder,
			CASE WHEN same THEN l.session ELSE excluded.session END,
			CASE WHEN same THEN l.token ELSE 1 + GREATEST(l.token, excluded.token - 1,
				(SELECT token FROM fencing_tokens WHERE name = l.key FOR UPDATE)) END,
			CASE WHEN same THEN l.acquired_at ELSE now END,
			CASE WHEN same AND NOT $6::boolean THEN l.expires_at ELSE now + $4::bigint * interval '1 microsecond' END
		FROM (SELECT now, $3::text <> '' AND l.holder = $3::text AND l.expires_at > now AND CASE WHEN l.session IS NULL OR NOT pg_try_advisory_xact_lock_shared(l.session) THEN true ELSE EXISTS (SELECT FROM pg_catalog.pg_locks AS k JOIN pg_catalog.pg_database AS d ON d.oid = k.database
		WHERE k.locktype = 'advisory' AND k.mode = 'ExclusiveLock' AND k.granted AND k.pid = pg_catalog.pg_backend_pid()
			AND d.datname = pg_catalog.current_database() AND k.objsubid = 1
			AND (k.classid::bigint << 32 | k.objid::bigint) = l.session) END AS same
			FROM (SELECT pg_catalog.clock_timestamp() AS now) AS clock OFFSET 0) AS m)
	WHERE CASE WHEN l.expires_at > pg_catalog.clock_timestamp() AND CASE WHEN l.session IS NULL OR NOT pg_try_advisory_xact_lock_shared(l.session) THEN true ELSE EXISTS (SELECT FROM pg_catalog.pg_locks AS k JOIN pg_catalog.pg_database AS d ON d.oid = k.database
		WHERE k.locktype = 'advisory' AND k.mode = 'ExclusiveLock' AND k.granted AND k.pid = pg_catalog.pg_backend_pid()
			AND d.datname = pg_catalog.current_database() AND k.objsubid = 1
			AND (k.classid::bigint << 32 | k.objid::bigint) = l.session) END THEN CASE
			WHEN l.lock_id = $2::text THEN pg_catalog.int8in(pg_catalog.textout(pg_catalog.concat('sqlfence:overtaken:', l.token))) IS NOT NULL
			ELSE $3::text <> '' AND l.holder = $3::text END
		WHEN (SELECT live FROM seen) THEN pg_catalog.int8in(pg_catalog.textout(pg_catalog.concat('sqlfence:overtaken:', l.token))) IS NOT NULL
		ELSE true END
	RETURNING *
), ledger AS (
	INSERT INTO fencing_tokens AS t (name, token)
	SELECT won.key, won.token FROM won WHERE won.lock_id = $2::text
	ON CONFLICT (name) DO UPDATE SET token = CASE
		WHEN COALESCE(t.token, 0) < excluded.token AND excluded.token <= 900000000000000 THEN excluded.token
		ELSE pg_catalog.int8in(pg_catalog.textout(pg_catalog.concat('sqlfence:overtaken:', t.token))) END
)
SELECT seen.live, seen.session, false, seen.token, COALESCE(seen.holder, ''), CASE WHEN pg_catalog.isfinite(seen.expires_at) THEN LEAST(extract(epoch FROM seen.expires_at) * 1000000, 9223372036854774784) END::bigint, CASE WHEN pg_catalog.isfinite(seen.expires_at - seen.now) THEN LEAST(extract(epoch FROM seen.expires_at - seen.now) * 1000000, 9223372036854774784) END::bigint,
	won.key, won.lock_id, won.holder, won.token, CASE WHEN pg_catalog.isfinite(won.acquired_at) THEN LEAST(extract(epoch FROM won.acquired_at) * 1000000, 9223372036854774784) END::bigint, CASE WHEN pg_catalog.isfinite(won.expires_at) THEN LEAST(extract(epoch FROM won.expires_at) * 1000000, 9223372036854774784) END::bigint,
	won.session IS NOT NULL, CASE WHEN pg_catalog.isfinite(won.expires_at - statement_timestamp()) THEN LEAST(extract(epoch FROM won.expires_at - statement_timestamp()) * 1000000, 9223372036854774784) END::bigint
FROM seen LEFT JOIN (
	SELECT key, lock_id, holder, session, token, acquired_at, expires_at FROM won
	UNION ALL
	SELECT $1::text, $2::text, holder, held_session, held_token, acquired_at, expires_at FROM seen WHERE live AND own
) AS won ON true$statement$
		INTO live, skipped, skipped, newest, holder, until, skipped, skipped, lock_id, skipped, token, skipped, ends, skipped, skipped
		USING key, own, owner, ceil(seconds * 1000000)::bigint, NULL::bigint, false;
			EXIT WHEN lock_id IS NOT NULL OR live OR (newest BETWEEN 0 AND 899999999999999) IS NOT TRUE;
		EXCEPTION WHEN invalid_text_representation THEN
			IF strpos(SQLERRM, 'sqlfence:overtaken:') = 0 THEN
				RAISE;
			END IF;
		END;
	END LOOP;
	IF lock_id IS NULL AND NOT live THEN
		RAISE EXCEPTION 'sqlfence: there is no token left for %%, or its row in fencing_tokens is negative: %%', quote_literal(key), newest
			USING ERRCODE = 'sequence_generator_limit_exceeded';
	END IF;
	IF lock_id IS NOT NULL THEN
		holder := owner;
		until := ends;
	END IF;
	IF token >= 90000000000000 THEN
		RAISE WARNING 'sqlfence: fencing tokens of %% are running out: %%', quote_literal(key), token;
	END IF;
	expires_at := timestamptz 'epoch' + until * interval '1 microsecond';
	COMMIT;
END
$procedure$$create$, home, path);

	EXECUTE pg_catalog.format($create$
CREATE OR REPLACE PROCEDURE %1$s.sqlfence_lease_extend(IN lock_id text, IN seconds double precision, INOUT expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
LANGUAGE plpgsql SECURITY INVOKER AS $procedure$
DECLARE
	ends bigint;
	skipped text;
BEGIN
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	PERFORM pg_catalog.set_config('search_path', %2$L, true);
	IF (seconds BETWEEN 0.001 AND 86400) IS NOT TRUE THEN
		RAISE EXCEPTION 'sqlfence: a lease lives for 0.001 to 86400 seconds, not %%', seconds
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	EXECUTE $statement$UPDATE fencing_leases AS l SET expires_at = n.now + $2::bigint * interval '1 microsecond'
FROM (SELECT key, pg_catalog.clock_timestamp() AS now, CASE WHEN pg_catalog.current_setting('synchronous_commit') = 'off' THEN pg_catalog.set_config('synchronous_commit', 'on', true) END AS durable FROM (SELECT key FROM fencing_leases WHERE lock_id = $1::text FOR UPDATE) AS locked) AS n
WHERE l.key = n.key AND l.lock_id = $1::text AND l.expires_at > n.now AND CASE WHEN l.session IS NULL OR NOT pg_try_advisory_xact_lock_shared(l.session) THEN true ELSE EXISTS (SELECT FROM pg_catalog.pg_locks AS k JOIN pg_catalog.pg_database AS d ON d.oid = k.database
		WHERE k.locktype = 'advisory' AND k.mode = 'ExclusiveLock' AND k.granted AND k.pid = pg_catalog.pg_backend_pid()
			AND d.datname = pg_catalog.current_database() AND k.objsubid = 1
			AND (k.classid::bigint << 32 | k.objid::bigint) = l.session) END
RETURNING CASE WHEN pg_catalog.isfinite(l.expires_at) THEN LEAST(extract(epoch FROM l.expires_at) * 1000000, 9223372036854774784) END::bigint, CASE WHEN pg_catalog.isfinite(l.expires_at - statement_timestamp()) THEN LEAST(extract(epoch FROM l.expires_at - statement_timestamp()) * 1000000, 9223372036854774784) END::bigint$statement$
		INTO ends, skipped
		USING lock_id, ceil(seconds * 1000000)::bigint;
	IF ends IS NULL THEN
		RAISE EXCEPTION 'sqlfence: stale lease %%: it has ended', quote_literal(lock_id) USING ERRCODE = 'FT002';
	END IF;
	expires_at := timestamptz 'epoch' + ends * interval '1 microsecond';
	COMMIT;
END
$procedure$$create$, home, path);

	EXECUTE pg_catalog.format($create$
CREATE OR REPLACE PROCEDURE %1$s.sqlfence_lease_release(IN lock_id text)
LANGUAGE plpgsql SECURITY INVOKER AS $procedure$
DECLARE
	release text := pg_catalog.translate(pg_catalog.rtrim(pg_catalog.encode(
		pg_catalog.uuid_send(pg_catalog.gen_random_uuid()), 'base64'), '='), '+/', '-_');
	key text;
	skipped text;
BEGIN
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	PERFORM pg_catalog.set_config('search_path', %2$L, true);
	EXECUTE $statement$UPDATE fencing_leases AS l SET lock_id = NULL, session = NULL, holder = $2::text, expires_at = pg_catalog.clock_timestamp()
WHERE lock_id = $1::text AND expires_at > pg_catalog.clock_timestamp() AND CASE WHEN l.session IS NULL OR NOT pg_try_advisory_xact_lock_shared(l.session) THEN true ELSE EXISTS (SELECT FROM pg_catalog.pg_locks AS k JOIN pg_catalog.pg_database AS d ON d.oid = k.database
		WHERE k.locktype = 'advisory' AND k.mode = 'ExclusiveLock' AND k.granted AND k.pid = pg_catalog.pg_backend_pid()
			AND d.datname = pg_catalog.current_database() AND k.objsubid = 1
			AND (k.classid::bigint << 32 | k.objid::bigint) = l.session) END
RETURNING key, CASE WHEN l.notify_until > pg_catalog.clock_timestamp() THEN pg_notify('sqlfence_leases', l.key) END$statement$
		INTO key, skipped
		USING lock_id, release;
	IF key IS NULL THEN
		RAISE EXCEPTION 'sqlfence: stale lease %%: it has ended', quote_literal(lock_id) USING ERRCODE = 'FT002';
	END IF;
	COMMIT;
END
$procedure$$create$, home, path);
END
$install$;
-- +goose StatementEnd
