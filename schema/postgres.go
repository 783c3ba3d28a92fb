package schema

import (
	"strconv"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
)

var postgres = dialect{
	Dialect: pg.Text,
	names:   sqlfence.Postgres,

	find:    func(f fence) string { return replace(findPostgres, f) },
	scan:    scanText,
	fits:    func(typ string) bool { return typ == "bigint" },
	typ:     "bigint",
	steps:   func(f fence, tries int) steps { return steps{add: addPostgres(f, tries)} },
	backoff: 200 * time.Millisecond,
}

var findPostgres = pg.Qualified(`SELECT pg_catalog.concat(pg_catalog.format_type(a.atttypid, a.atttypmod),
	CASE WHEN a.attgenerated <> '' THEN ' GENERATED' WHEN a.attidentity <> '' THEN ' IDENTITY' END)
FROM pg_catalog.pg_attribute AS a
WHERE a.attrelid = pg_catalog.to_regclass({table text}) AND a.attname = {column text} AND a.attnum > 0 ` +
	`AND NOT a.attisdropped`)

// addPostgresText looks for the column again under a lock that doesn't block writers, for which it waits up to 3 s: an
// autovacuum gives way to a waiting session, but only after deadlock_timeout, by default 1 s. Then it adds the column.
const addPostgresText = `
DECLARE
	found pg_catalog.text;
	patience pg_catalog.text := pg_catalog.current_setting('lock_timeout');
	path pg_catalog.text := ` + pg.CurrentPath + `;
BEGIN
	` + pg.CatalogueFirst + `
	FOR try IN 1..{tries} LOOP
		BEGIN
			PERFORM pg_catalog.set_config('lock_timeout', '3s', true);
			LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE; -- not in the way of writers
			found := ({find});
			IF found IS NULL THEN
				PERFORM pg_catalog.set_config('lock_timeout', '100ms', true); -- they wait, too
				ALTER TABLE {table} ADD COLUMN {column} bigint NOT NULL DEFAULT 0;
			ELSIF found <> 'bigint' THEN
				RAISE EXCEPTION 'sqlfence: there is a column % that is %, want bigint', {column text}, found
					USING ERRCODE = 'datatype_mismatch';
			END IF;
			EXIT;
		EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
			IF try = {tries} THEN
				RAISE;
			END IF;
		END;
		PERFORM pg_catalog.pg_sleep(LEAST(0.1 * pg_catalog.power(2, try), 1.6));
	END LOOP;
	` + pg.PathAsBefore + `
	PERFORM pg_catalog.set_config('lock_timeout', patience, true);
END
`

func addPostgres(f fence, tries int) string {
	body := replace(strings.ReplaceAll(strings.ReplaceAll(addPostgresText, "{find}", findPostgres),
		"{tries}", strconv.Itoa(tries)), f)
	tag := "$add$"
	for strings.Contains(body, tag) {
		tag = "$add_" + tag[1:]
	}
	return "DO " + tag + body + tag
}

// replace writes the names into a text.
func replace(text string, f fence) string {
	d := pg.Text
	return strings.NewReplacer("{table}", f.table, "{column}", f.column, "{table text}", d.Text(f.table),
		"{column text}", d.Text(f.stored)).Replace(text)
}
