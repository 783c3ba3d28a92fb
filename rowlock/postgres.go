package rowlock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"sync"

	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// postgresSpelling is the spelling of PostgreSQL. The field versioned needs no test of the type, because PostgreSQL
// throws an error if a column of texts is compared with an integer. The field user returns a text, which PostgreSQL
// stores in a column of texts or of integers; pgx sends no integer for a text.
var postgresSpelling = spelling{
	Dialect: pg.Text,
	binary:  asItIs, stored: asItIs, shown: asItIs,
	same:    equals,
	equals:  "OPERATOR(=)", // the key's type may be an extension's
	user:    func(id driver.Value) driver.Value { return fmt.Sprint(id) },
	version: "CAST({serial} AS bigint)", versioned: "{serial} = {version}",
	keyText: "CAST(pg_catalog.json_build_array({keycolumns}) AS pg_catalog.text)", keyComma: ", ",
}

// postgres is the dialect of PostgreSQL. hasUniqueKey ignores an index's columns beyond indnkeyatts, which the index
// only stores.
var postgres = sync.OnceValue(func() *dialect {
	return &dialect{
		spelling:   postgresSpelling,
		sendUpdate: sendUpdatePostgres,
		set:        setReturning,
		abandoning: byTheDriver,
		upsert:     upsert,
		create:     createWith("timestamptz"),
		lockRow:    "SELECT 1 FROM {table} WHERE {row} FOR NO KEY UPDATE",
		isolation:  sql.LevelReadCommitted,
		wantsTime:  "timestamptz",
		isTime:     func(typ string) bool { return typ == "timestamp with time zone" },
		listColumns: `SELECT attname, pg_catalog.format_type(atttypid, NULL), attnotnull FROM pg_catalog.pg_attribute
	WHERE attrelid = pg_catalog.to_regclass({regclass}) AND attnum > 0 AND NOT attisdropped`,
		hasUniqueKey: `SELECT EXISTS (SELECT FROM pg_catalog.pg_index
	WHERE indrelid = pg_catalog.to_regclass({regclass}) AND indisunique AND indpred IS NULL AND indexprs IS NULL AND (
		SELECT pg_catalog.bool_and(attname IN ({keynames})) FROM pg_catalog.pg_attribute
		WHERE attrelid = indrelid AND attnum = ANY ((indkey::int2[])[0:pg_catalog.int4mi(indnkeyatts, 1)])))`,
	}
})

// foundFragments are for the row that sendUpdatePostgres has locked.
var foundFragments = sync.OnceValue(func() sqltext.Fragments {
	return lockFragments(&postgresSpelling, columns{"rowlock_serial", "rowlock_by", "rowlock_since", "rowlock_expiry"})
})

// sendUpdatePostgres sends one statement, even for a refusal. It locks the row first, so that the condition and the
// state are of the newest version of the row.
func sendUpdatePostgres(ctx context.Context, q owned, t *Table, u lockUpdate) (rowState, error) {
	args := u.fragments(t)
	b := sqltext.Builder{Dialect: pg.Text}
	b.SQL(`WITH rowlock_found AS MATERIALIZED (
		SELECT {serial} AS rowlock_serial, {by} AS rowlock_by, {since} AS rowlock_since, {expiry} AS rowlock_expiry
		FROM {table} WHERE {row} FOR NO KEY UPDATE
	), rowlock_granted AS (
		UPDATE {table} SET {set} FROM rowlock_found WHERE {row} AND `, args, t.fragments)
	b.SQL("{condition}", args, foundFragments())
	b.SQL(`
		RETURNING {holder} AS rowlock_new_by, {micros {since}} AS rowlock_new_since, {micros {expiry}} AS rowlock_new_expiry, true AS rowlock_ok{load}
	)
	SELECT `, args, t.fragments)
	b.SQL(`{version}, COALESCE(rowlock_new_by, {holder}), COALESCE(rowlock_new_since, {micros {since}}),
		COALESCE(rowlock_new_expiry, {micros {expiry}}), {live}, COALESCE(rowlock_ok, false), rowlock_granted.*
	FROM rowlock_found LEFT JOIN rowlock_granted ON true`, foundFragments())
	return readState(ctx, q, sqltext.Whole(pg.Text, b.String()), b.Args(), u.dest, 10)
}
