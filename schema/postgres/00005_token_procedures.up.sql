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
CREATE OR REPLACE PROCEDURE %1$s.sqlfence_issue(IN name text, INOUT token bigint DEFAULT NULL::bigint)
LANGUAGE plpgsql SECURITY INVOKER AS $procedure$
BEGIN
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	PERFORM pg_catalog.set_config('search_path', %2$L, true);
	IF octet_length(name) <> char_length(name) THEN
		name := pg_catalog."normalize"(name, 'NFC');
	END IF;
	IF COALESCE(name IN ('', 'sqlfence:floor'), true) OR octet_length(convert_to(name, 'UTF8')) > 512 THEN
		RAISE EXCEPTION 'sqlfence: a token''s name has 1 to 512 bytes, and isn''t that of the ledger''s floor'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	EXECUTE $statement$INSERT INTO fencing_tokens (name, token)
SELECT turn.name, turn.floor + $2::bigint
FROM (SELECT asked.name, pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(pg_catalog.concat('sqlfence:', asked.name), 0)), CASE WHEN pg_catalog.current_setting('synchronous_commit') = 'off' THEN pg_catalog.set_config('synchronous_commit', 'on', true) END, GREATEST(COALESCE((SELECT token FROM fencing_tokens WHERE name = ''), 0) + (SELECT LEAST(t.n, 90000) * 10000000000 + LEAST(t.n, 1) * LEAST(GREATEST((extract(epoch FROM pg_catalog.statement_timestamp()) * 10)::bigint - 17672256000, 0), 9999999999) FROM (SELECT ('x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::bigint - 1 AS n OFFSET 0) AS t), COALESCE((SELECT token FROM fencing_tokens WHERE name = 'sqlfence:floor'), 0)) AS floor,
	pg_catalog.set_config('sqlfence.count', ($2::bigint)::text, true) FROM (SELECT $1::text AS name) AS asked OFFSET 0) AS turn
WHERE turn.floor <= 900000000000000 - $2::bigint AND true
ON CONFLICT (name) DO UPDATE SET token = GREATEST(COALESCE(fencing_tokens.token, 0) + $2::bigint, excluded.token)
WHERE COALESCE(fencing_tokens.token, 0) BETWEEN 0 AND 900000000000000 - $2::bigint
RETURNING token$statement$
		INTO token
		USING name, 1::bigint;
	IF token IS NULL THEN
		RAISE EXCEPTION 'sqlfence: there is no token left for %%, or its row in fencing_tokens is negative', quote_literal(name)
			USING ERRCODE = 'sequence_generator_limit_exceeded';
	END IF;
	IF token >= 90000000000000 THEN
		RAISE WARNING 'sqlfence: fencing tokens of %% are running out: %%, the highest is 900000000000000', quote_literal(name), token;
	END IF;
	COMMIT;
END
$procedure$$create$, home, path);

	EXECUTE pg_catalog.format($create$
CREATE OR REPLACE PROCEDURE %1$s.sqlfence_adopt(IN name text, IN token bigint)
LANGUAGE plpgsql SECURITY INVOKER AS $procedure$
DECLARE
	newest bigint;
BEGIN
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	PERFORM pg_catalog.set_config('search_path', %2$L, true);
	IF octet_length(name) <> char_length(name) THEN
		name := pg_catalog."normalize"(name, 'NFC');
	END IF;
	IF COALESCE(name IN ('', 'sqlfence:floor'), true) OR octet_length(convert_to(name, 'UTF8')) > 512 THEN
		RAISE EXCEPTION 'sqlfence: a token''s name has 1 to 512 bytes, and isn''t that of the ledger''s floor'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF (token BETWEEN 1 AND 900000000000000) IS NOT TRUE THEN
		RAISE EXCEPTION 'sqlfence: a token is a number from 1 to 900000000000000'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	EXECUTE $statement$INSERT INTO fencing_tokens (name, token)
SELECT $1::text, $2::bigint FROM (SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(pg_catalog.concat('sqlfence:', $1::text), 0)), CASE WHEN pg_catalog.current_setting('synchronous_commit') = 'off' THEN pg_catalog.set_config('synchronous_commit', 'on', true) END OFFSET 0) AS turn
WHERE $2::bigint > COALESCE((SELECT token FROM fencing_tokens WHERE name = 'sqlfence:floor'), 0) OR EXISTS (SELECT FROM fencing_tokens WHERE name = $1::text AND token > 0)
ON CONFLICT (name) DO UPDATE SET token = GREATEST(fencing_tokens.token, excluded.token)
RETURNING token$statement$
		INTO newest
		USING name, token;
	IF newest IS NULL THEN
		EXECUTE $statement$SELECT COALESCE((SELECT token FROM fencing_tokens WHERE name = 'sqlfence:floor'), 0)$statement$
		INTO newest
		USING name;
		RAISE EXCEPTION 'sqlfence: stale token %% for %%: its first token has to be above the floor %%', token, quote_literal(name), newest
			USING ERRCODE = 'FT002';
	END IF;
	IF newest > token THEN
		RAISE EXCEPTION 'sqlfence: stale token %% for %%, which has %%', token, quote_literal(name), newest
			USING ERRCODE = 'FT002';
	END IF;
	IF token >= 90000000000000 THEN
		RAISE WARNING 'sqlfence: fencing tokens of %% are running out: %%, the highest is 900000000000000', quote_literal(name), token;
	END IF;
	COMMIT;
END
$procedure$$create$, home, path);
END
$install$;
-- +goose StatementEnd
