// Package searchpath_test puts a schema before pg_catalog that has all names of pg_catalog.
package searchpath_test

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// copyCatalogue creates the schema hostile with a namesake of each operator, function, collation and type of
// pg_catalog. These functions raise an error, and these types accept no value. So a statement fails if it finds an
// object of this schema.
const copyCatalogue = `DO $copy$
DECLARE
	o record;
	made integer := 0;
BEGIN
	FOR o IN SELECT p.oid, p.proname, pg_get_function_identity_arguments(p.oid) AS args, format_type(p.prorettype, NULL) AS
		result, p.proretset, p.prokind FROM pg_proc AS p WHERE p.pronamespace = 'pg_catalog'::regnamespace
		AND p.prokind IN ('f', 'a', 'w') AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
	LOOP
		BEGIN
			EXECUTE format('CREATE FUNCTION hostile.%I(%s) RETURNS %s %s LANGUAGE plpgsql AS %L', o.proname, o.args,
				CASE WHEN o.proretset THEN 'SETOF' ELSE '' END, o.result,
				format('BEGIN RAISE EXCEPTION %L; END', 'hostile function ' || o.proname));
			made := made + 1;
		EXCEPTION WHEN OTHERS THEN -- of a type that only C knows
		END;
	END LOOP;
	IF made < 1500 THEN
		RAISE EXCEPTION '% functions', made;
	END IF;
	made := 0;
	FOR o IN SELECT p.oid, p.oprname, p.oprleft, format_type(p.oprleft, NULL) AS l, format_type(p.oprright, NULL) AS r,
		format_type(p.oprresult, NULL) AS result FROM pg_operator AS p WHERE p.oprnamespace = 'pg_catalog'::regnamespace
	LOOP
		BEGIN
			EXECUTE format('CREATE FUNCTION hostile.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', 'operator_' || o.oid,
				CASE WHEN o.oprleft = 0 THEN o.r ELSE o.l || ', ' || o.r END, o.result,
				format('BEGIN RAISE EXCEPTION %L; END', 'hostile operator ' || o.oprname));
			EXECUTE format('CREATE OPERATOR hostile.%s (%s RIGHTARG = %s, FUNCTION = hostile.%I)', o.oprname,
				CASE WHEN o.oprleft = 0 THEN '' ELSE 'LEFTARG = ' || o.l || ',' END, o.r, 'operator_' || o.oid);
			made := made + 1;
		EXCEPTION WHEN OTHERS THEN
		END;
	END LOOP;
	IF made < 600 THEN
		RAISE EXCEPTION '% operators', made;
	END IF;
	-- Types that may differ in the length of a value have operators of their own.
	FOR o IN SELECT l, r, op FROM unnest('{text,varchar,name,bpchar}'::text[]) AS l,
		unnest('{text,varchar,name,bpchar}'::text[]) AS r, unnest('{=,<>,<,<=,>,>=,||}'::text[]) AS op
	LOOP
		BEGIN
			EXECUTE format('CREATE FUNCTION hostile.%I(%s, %s) RETURNS bool LANGUAGE plpgsql AS %L',
				'operator' || o.op, o.l, o.r, 'BEGIN RAISE EXCEPTION ''hostile operator''; END');
			EXECUTE format('CREATE OPERATOR hostile.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = hostile.%I)', o.op, o.l, o.r,
				'operator' || o.op);
		EXCEPTION WHEN duplicate_function THEN
		END;
	END LOOP;
	CREATE COLLATION hostile."C" (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
	FOR o IN SELECT t.typname FROM pg_type AS t WHERE t.typnamespace = 'pg_catalog'::regnamespace
		AND t.typtype = 'b' AND t.typname NOT LIKE '\_%'
	LOOP
		BEGIN
			EXECUTE format('CREATE DOMAIN hostile.%I AS pg_catalog.%1$I CHECK (false)', o.typname);
		EXCEPTION WHEN OTHERS THEN
		END;
	END LOOP;
END
$copy$`

// hostile is a database on PostgreSQL whose sessions find the schema hostile before pg_catalog. plain finds names as
// usual. owned finds the names of the test tables' schema first.
type hostile struct {
	harness.Base

	plain *sql.DB
	owned *sql.DB
	dsn   string
}

func newHostile(t *testing.T, b harness.Base) *hostile {
	t.Helper()
	u, err := url.Parse(harness.PostgresDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	path := func(schemas string) string {
		q := u.Query()
		q.Set("search_path", schemas)
		at := *u
		at.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // libpq doesn't read + as a blank
		return at.String()
	}
	h := &hostile{b, b.Raw(t, path("public")), b.Raw(t, path("home")), path("home, hostile, pg_catalog")}
	h.exec(t, "CREATE SCHEMA home; CREATE SCHEMA hostile")
	h.exec(t, copyCatalogue)
	return h
}

func (h *hostile) exec(t *testing.T, query string) {
	t.Helper()
	if _, err := h.plain.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
