-- +goose Up
-- +goose StatementBegin
DO $install$
DECLARE
	ledger oid := pg_catalog.to_regclass('fencing_tokens');
	home text;
	wanted name;
	called name;
	kind int2;
	definition text;
	patience text := pg_catalog.current_setting('lock_timeout');
BEGIN
	-- Writers wait behind a lock of the table.
	PERFORM pg_catalog.set_config('lock_timeout', '1s', true) WHERE patience = '0';
	PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('sqlfence-install', 0));
	SELECT n.nspname INTO home
	FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
	WHERE c.oid = ledger AND c.relkind = 'r' AND c.relpersistence <> 't' AND NOT c.relhassubclass AND NOT c.relispartition
		AND pg_catalog.pg_has_role(c.relowner, 'USAGE')
		AND EXISTS (SELECT FROM pg_catalog.pg_index AS i
			JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
			LEFT JOIN pg_catalog.pg_collation AS o ON o.oid = a.attcollation
			WHERE i.indrelid = c.oid AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indnkeyatts = 1 AND i.indpred IS NULL
				AND a.attname = 'name' AND a.atttypid IN ('text'::pg_catalog.regtype, 'varchar'::pg_catalog.regtype) AND o.collisdeterministic)
		AND EXISTS (SELECT FROM pg_catalog.pg_attribute AS a
			WHERE a.attrelid = c.oid AND a.attname = 'token' AND a.atttypid IN ('bigint'::pg_catalog.regtype, 'integer'::pg_catalog.regtype));
	IF home IS NULL THEN
		RAISE EXCEPTION 'sqlfence: fencing_tokens has to be an ordinary table with a unique name of type text and a token of type bigint, and the role to have the powers of its owner'
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END IF;

	-- The session evaluates this function when it plans a query or a guard of the ledger, because it is declared
	-- immutable. A plan is made anew after a change of its tables' triggers, as it is for the trigger itself, of their
	-- row-level security, and of the role that this applies to.
	EXECUTE pg_catalog.format($create$
CREATE OR REPLACE FUNCTION %1$I.sqlfence_turns_v1()
RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SECURITY INVOKER
AS $function$
BEGIN
	IF pg_catalog.row_security_active(%2$L::pg_catalog.regclass) THEN
		RAISE EXCEPTION 'sqlfence: row-level security of fencing_tokens applies to this role, so that a guard may not be evaluated: disable it, or give the role BYPASSRLS'
			USING ERRCODE = 'object_not_in_prerequisite_state';
	END IF;
	RETURN EXISTS (SELECT FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid OPERATOR(pg_catalog.=) %2$L::pg_catalog.regclass
		AND g.tgname OPERATOR(pg_catalog.=) 'sqlfence_turn_v1' AND g.tgenabled OPERATOR(pg_catalog.=) 'A');
END
$function$$create$, home, pg_catalog.format('%I.fencing_tokens', home));

	EXECUTE pg_catalog.format($create$
CREATE OR REPLACE FUNCTION %1$I.sqlfence_newest_v2(wanted text, given bigint, number integer, nonce text, asked regclass)
RETURNS boolean LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY INVOKER
AS $function$
DECLARE
	held bigint;
	rows bigint;
BEGIN
	IF asked OPERATOR(pg_catalog.=) %2$L::pg_catalog.regclass
		-- committed, or uncommitted
		AND pg_catalog.starts_with(pg_catalog.current_setting('transaction_isolation'), 'read ')
		AND pg_catalog.pg_advisory_xact_lock_shared(
			pg_catalog.hashtextextended(pg_catalog.concat('sqlfence:', wanted), 0)) IS NOT NULL
		AND pg_catalog.pg_advisory_xact_lock_shared(
			pg_catalog.hashtextextended(pg_catalog.concat('sqlfence-row:', wanted), 0)) IS NOT NULL THEN
		-- Behind the locks, this query has a snapshot of its own. What a child has, no trigger guards. A second row of
		-- the name, where the unique index is gone, is an error.
		SELECT (SELECT COALESCE(t.token, 0) FROM ONLY %1$I.fencing_tokens AS t
			WHERE t.name OPERATOR(pg_catalog.=) wanted AND %1$I.sqlfence_turns_v1()) INTO held;
	END IF;
	IF held IS NULL THEN -- raising the token takes no turn, or the name has no row
		PERFORM pg_catalog.pg_advisory_xact_lock_shared(
			pg_catalog.hashtextextended(pg_catalog.concat('sqlfence:', wanted), 0));
		IF asked OPERATOR(pg_catalog.=) %2$L::pg_catalog.regclass THEN
			SELECT COALESCE(pg_catalog.max(l.token), 0), pg_catalog.count(*) INTO held, rows
			FROM (SELECT t.token FROM %1$I.fencing_tokens AS t WHERE t.name OPERATOR(pg_catalog.=) wanted FOR SHARE) AS l;
		ELSE
			EXECUTE pg_catalog.format('SELECT COALESCE(pg_catalog.max(l.token), 0), pg_catalog.count(*)'
				' FROM (SELECT t.token FROM %%s AS t WHERE t.name OPERATOR(pg_catalog.=) $1 FOR SHARE) AS l', asked)
				INTO held, rows USING wanted;
		END IF;
		IF pg_catalog.int8eq(rows, 0) THEN
			RETURN pg_catalog.int8in(pg_catalog.textout(
				pg_catalog.concat('sqlfence:', nonce, ':unknown:', number, ':', rows))) IS NULL;
		END IF;
	END IF;
	IF pg_catalog.int8eq(held, given) THEN
		RETURN true;
	END IF;
	RETURN pg_catalog.int8in(pg_catalog.textout(
		pg_catalog.concat('sqlfence:', nonce, ':ledger:', number, ':', held))) IS NULL;
END
$function$$create$, home, pg_catalog.format('%I.fencing_tokens', home));

	EXECUTE pg_catalog.format($create$
CREATE OR REPLACE FUNCTION %1$I.sqlfence_turn_v1()
RETURNS trigger LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY INVOKER SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
	taken integer := COALESCE(NULLIF(current_setting('sqlfence.turns', true), ''), '0');
BEGIN
	IF TG_OP = 'TRUNCATE' THEN
		RAISE EXCEPTION 'sqlfence: fencing_tokens keeps its names, so that no token is issued twice: TRUNCATE is refused'
			USING ERRCODE = 'FTL01', HINT = 'To retire a name call tokens.Store.Rotate.';
	ELSIF TG_OP = 'DELETE' THEN
		IF OLD.name IN ('', 'sqlfence:floor') OR COALESCE(OLD.token, 0) >
			COALESCE((SELECT t.token FROM %1$I.fencing_tokens AS t WHERE t.name = 'sqlfence:floor'), 0) THEN
			RAISE EXCEPTION
				'sqlfence: fencing_tokens keeps its names, so that no token is issued twice: %% can''t be deleted',
				quote_literal(OLD.name)
				USING ERRCODE = 'FTL01', HINT = 'To delete names call tokens.Store.Delete, to retire one Rotate.';
		END IF;
	ELSIF NEW.name IS DISTINCT FROM OLD.name THEN
		RAISE EXCEPTION 'sqlfence: fencing_tokens keeps its names, so that no token is issued twice: %% can''t be renamed', quote_literal(OLD.name)
			USING ERRCODE = 'FTL01', HINT = 'To retire a name call tokens.Store.Rotate.';
	ELSIF COALESCE(NEW.token, 0) < COALESCE(OLD.token, 0) THEN
		RAISE EXCEPTION 'sqlfence: tokens never fall: that of %% is %%, and can''t become %%', quote_literal(OLD.name), OLD.token, COALESCE(NEW.token, 0)
			USING ERRCODE = 'FTL01', HINT = 'Tokens are issued by tokens.Store.Issue, and raised by Adopt and Repair.';
	END IF;
	IF taken < 256 THEN
		PERFORM pg_advisory_xact_lock(hashtextextended(concat('sqlfence-row:', OLD.name), 0)),
			set_config('sqlfence.turns', (taken + 1)::text, true);
	ELSE -- the room for locks has its limits
		LOCK TABLE %1$I.fencing_tokens IN SHARE ROW EXCLUSIVE MODE;
	END IF;
	RETURN NULL;
END
$function$$create$, home);

	EXECUTE pg_catalog.format($create$
CREATE OR REPLACE FUNCTION %1$I.sqlfence_floor_v1()
RETURNS trigger LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY INVOKER SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
	floor bigint;
BEGIN
	IF COALESCE(NEW.token, 0) > 0 AND (TG_OP = 'INSERT' OR COALESCE(OLD.token, 0) <= 0)
		AND NEW.name NOT IN ('', 'sqlfence:floor') AND current_setting('session_replication_role') <> 'replica' THEN
		IF NOT starts_with(current_setting('transaction_isolation'), 'read ') THEN
			INSERT INTO %1$I.fencing_tokens (name, token) VALUES ('sqlfence:floor', 0) ON CONFLICT (name) DO NOTHING;
			PERFORM FROM %1$I.fencing_tokens AS t WHERE t.name = 'sqlfence:floor' FOR SHARE;
		END IF;
		SELECT t.token INTO floor FROM %1$I.fencing_tokens AS t WHERE t.name = 'sqlfence:floor';
		IF NEW.token - GREATEST(NULLIF(current_setting('sqlfence.count', true), '')::bigint, 1) + 1 <= floor THEN
			RAISE EXCEPTION 'sqlfence: the first token of a name has to be above those of names that were deleted: %% of %% isn''t above %%',
				NEW.token, quote_literal(NEW.name), floor
				USING ERRCODE = '40001', HINT = 'Tokens are issued by tokens.Store.Issue, of a version that has Delete.';
		END IF;
	END IF;
	RETURN NULL;
END
$function$$create$, home);

	FOR wanted, called, kind, definition IN VALUES
		('sqlfence_turn_v1', 'sqlfence_turn_v1', 25::int2, 'AFTER UPDATE OR DELETE ON %1$I.fencing_tokens FOR ROW'),
		('sqlfence_kept_v1', 'sqlfence_turn_v1', 34::int2, 'BEFORE TRUNCATE ON %1$I.fencing_tokens FOR STATEMENT'),
		('sqlfence_floor_v1', 'sqlfence_floor_v1', 21::int2, 'AFTER INSERT OR UPDATE ON %1$I.fencing_tokens FOR ROW')
	LOOP
		IF NOT EXISTS (SELECT FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid = ledger AND g.tgname = wanted AND g.tgtype = kind AND g.tgqual IS NULL AND g.tgattr = ''
			AND g.tgfoid = pg_catalog.to_regprocedure(pg_catalog.format('%I.%I()', home, called))) THEN
			EXECUTE pg_catalog.format('DROP TRIGGER IF EXISTS %2$I ON %1$I.fencing_tokens', home, wanted);
			EXECUTE pg_catalog.format('CREATE TRIGGER %2$I ' || definition || ' EXECUTE FUNCTION %1$I.%3$I()', home, wanted, called);
		END IF;
		IF NOT EXISTS (SELECT FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid = ledger AND g.tgname = wanted AND g.tgenabled = 'A') THEN
			EXECUTE pg_catalog.format('ALTER TABLE %1$I.fencing_tokens ENABLE ALWAYS TRIGGER %2$I', home, wanted);
		END IF;
	END LOOP;
	PERFORM pg_catalog.set_config('lock_timeout', patience, true);
END
$install$;
-- +goose StatementEnd
