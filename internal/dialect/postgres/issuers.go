package postgres

import "github.com/sqlfence/sqlfence/internal/sqltext"

// issuers: the triggers don't fire in a session that calls itself a replica, which copies what another server has
// recorded. They name the columns, so that these can't be dropped, or get another type, without them.
var issuers = sqltext.Issuers{
	Columns: []sqltext.IssuerColumn{{Name: sqltext.IssuedBy, Type: "text"},
		{Name: sqltext.IssuedAt, Type: "timestamp with time zone"}},
	Whole: recordIssuers,
	Read:  "issued_by, " + Text.Micros("issued_at"),
}

// issuerBody is what the triggers' function does.
const issuerBody = `
BEGIN
	NEW.issued_at := clock_timestamp();
	NEW.issued_by := concat_ws(', ', concat(session_user, '@', COALESCE(host(inet_client_addr()), 'local')),
		concat('pid ', pg_backend_pid()), NULLIF(current_setting('application_name'), ''));
	RETURN NEW;
END
`

// The triggers of [issuers], and the function of both.
const issuedTrigger, issuedFirstTrigger = "sqlfence_issued_v1", "sqlfence_issued_first_v1"

// IssuersAsCreated is a condition: the trigger g, of the ledger c in the schema n, is what [recordIssuers] creates.
var IssuersAsCreated = "(g.tgname, g.tgtype) IN (('" + issuedTrigger + "', 19), ('" + issuedFirstTrigger +
	"', 7)) AND g.tgenabled IN ('O', 'A') AND EXISTS (SELECT FROM pg_catalog.pg_proc AS t WHERE t.oid = g.tgfoid AND " +
	"t.pronamespace = n.oid AND t.proname = '" + issuedTrigger + "' AND " + asCreated("t", issuerBody) + ")"

// recordIssuers adds the columns, the function and the triggers to the table fencing_tokens that the search path
// leads to, or brings them up to date. What is there isn't locked.
const recordIssuers = `DO $record$
DECLARE
	ledger oid := pg_catalog.to_regclass('fencing_tokens');
	home text;
	other text;
	wanted name;
	kind int2;
	definition text;
	patience text := pg_catalog.current_setting('lock_timeout');
BEGIN
	-- Writers wait behind a lock of the table.
	PERFORM pg_catalog.set_config('lock_timeout', '1s', true) WHERE patience = '0';
	PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('sqlfence-install', 0));
	SELECT n.nspname INTO home
	FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = ledger;
	IF home IS NULL THEN
		PERFORM FROM fencing_tokens; -- raises that there is none
	END IF;
	SELECT pg_catalog.concat(a.attname, ' of type ', pg_catalog.format_type(a.atttypid, a.atttypmod)) INTO other
	FROM pg_catalog.pg_attribute AS a
	WHERE a.attrelid = ledger AND NOT a.attisdropped AND (a.attname = 'issued_by' AND a.atttypid <> 'text'::pg_catalog.regtype
		OR a.attname = 'issued_at' AND a.atttypid <> 'timestamptz'::pg_catalog.regtype);
	IF other IS NOT NULL THEN
		RAISE EXCEPTION 'sqlfence: fencing_tokens has a column % of its own', other USING ERRCODE = 'datatype_mismatch';
	END IF;
	IF (SELECT pg_catalog.count(*) FROM pg_catalog.pg_attribute AS a
		WHERE a.attrelid = ledger AND NOT a.attisdropped AND a.attname IN ('issued_by', 'issued_at')) < 2 THEN
		EXECUTE pg_catalog.format('ALTER TABLE %1$I.fencing_tokens ADD COLUMN IF NOT EXISTS issued_by text, '
			'ADD COLUMN IF NOT EXISTS issued_at timestamptz', home);
	END IF;

	EXECUTE pg_catalog.format($create$
CREATE OR REPLACE FUNCTION %1$I.sqlfence_issued_v1()
RETURNS trigger LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY INVOKER SET search_path = pg_catalog, pg_temp
AS $function$` + issuerBody + `$function$$create$, home);

	FOR wanted, kind, definition IN VALUES
		('sqlfence_issued_v1', 19::int2, 'BEFORE UPDATE OF token, issued_by, issued_at ON %1$I.fencing_tokens FOR ROW
			WHEN (NEW.token IS DISTINCT FROM OLD.token AND NEW.name NOT IN ('''', ''sqlfence:floor''))'),
		('sqlfence_issued_first_v1', 7::int2, 'BEFORE INSERT ON %1$I.fencing_tokens FOR ROW
			WHEN (NEW.token > 0 AND NEW.issued_by IS NULL AND NEW.issued_at IS NULL
			AND NEW.name NOT IN ('''', ''sqlfence:floor''))')
	LOOP
		IF NOT EXISTS (SELECT FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid = ledger AND g.tgname = wanted AND g.tgtype = kind
			AND g.tgenabled = 'O' AND g.tgfoid = pg_catalog.to_regprocedure(pg_catalog.format('%I.sqlfence_issued_v1()', home))) THEN
			EXECUTE pg_catalog.format('DROP TRIGGER IF EXISTS %2$I ON %1$I.fencing_tokens', home, wanted);
			EXECUTE pg_catalog.format('CREATE TRIGGER %2$I ' || definition || ' EXECUTE FUNCTION %1$I.sqlfence_issued_v1()',
				home, wanted);
		END IF;
	END LOOP;
	PERFORM pg_catalog.set_config('lock_timeout', patience, true);
END
$record$`
