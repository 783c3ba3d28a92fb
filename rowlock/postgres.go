package rowlock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

type postgres struct{ sqltext.Dialect }

// foundPieces speak of the row that sendUpdate has locked.
var foundPieces = lockPieces(postgres{pg.Text},
	columns{"rowlock_serial", "rowlock_by", "rowlock_since", "rowlock_expiry"})

// sendUpdate sends one statement, also for a refusal. It locks the row first, so that
// the condition and the state are of one version of the row, the newest: an UPDATE that
// waits for the row is checked on the newest version, but a SELECT beside it would read
// the one before.
func (d postgres) sendUpdate(ctx context.Context, q querier, t *Table, u lockUpdate) (rowState, error) {
	args := u.pieces(t)
	b := sqltext.Builder{Dialect: d}
	b.SQL(`WITH rowlock_found AS MATERIALIZED (
		SELECT {serial} AS rowlock_serial, {by} AS rowlock_by, {since} AS rowlock_since, {expiry} AS rowlock_expiry
		FROM {table} WHERE {row} FOR NO KEY UPDATE
	), rowlock_granted AS (
		UPDATE {table} SET {set} FROM rowlock_found WHERE {row} AND `, args, t.pieces)
	b.SQL("{condition}", args, foundPieces)
	b.SQL(`
		RETURNING {holder} AS rowlock_new_by, {micros {since}} AS rowlock_new_since, {micros {expiry}} AS rowlock_new_expiry, true AS rowlock_ok{load}
	)
	SELECT `, args, t.pieces)
	b.SQL(`{version}, COALESCE(rowlock_new_by, {holder}), COALESCE(rowlock_new_since, {micros {since}}),
		COALESCE(rowlock_new_expiry, {micros {expiry}}), {live}, COALESCE(rowlock_ok, false), rowlock_granted.*
	FROM rowlock_found LEFT JOIN rowlock_granted ON true`, foundPieces)
	return readState(ctx, q, b.String(), b.Args(), u.dest, 10)
}

func (postgres) unfit() string { return "" }

func (postgres) version() string { return "CAST({serial} AS bigint)" }

// versioned: PostgreSQL can't compare a column of texts so, and says which it is.
func (postgres) versioned() string { return "{serial} = {version}" }

func (postgres) keyText() string  { return "CAST(json_build_array({keycolumns}) AS text)" }
func (postgres) keyComma() string { return ", " }

func (postgres) lockRow() string { return "SELECT 1 FROM {table} WHERE {row} FOR NO KEY UPDATE" }

func (postgres) isolation() sql.IsolationLevel { return sql.LevelReadCommitted }

func (postgres) set(
	ctx context.Context, q querier, t *Table, list string, key []any, others sqltext.Pieces,
) (rowState, error) {
	return setReturning(ctx, q, t, list, key, others)
}

// user: a text goes into a column of either type; pgx sends no integer for a text.
func (postgres) user(id driver.Value) driver.Value { return fmt.Sprint(id) }

func (postgres) abandoning(_ context.Context, _ *sql.DB, text string, send func(text string) error) error {
	return send(text)
}

func (postgres) severalStatements() bool          { return false }
func (postgres) create() string                   { return createWith("timestamptz") }
func (postgres) upsert() string                   { return upsert }
func (postgres) binary(expression string) string  { return expression }
func (postgres) stored(value string) string       { return value }
func (postgres) shown(column string) string       { return column }
func (postgres) same(column, value string) string { return column + " = " + value }

func (postgres) checkTime(typ string) (want string) {
	if typ != "timestamp with time zone" {
		return "timestamptz"
	}
	return ""
}

func (postgres) listColumns() string {
	return `SELECT attname, format_type(atttypid, NULL), attnotnull FROM pg_catalog.pg_attribute
	WHERE attrelid = to_regclass({regclass}) AND attnum > 0 AND NOT attisdropped`
}

// hasUniqueKey: an index's columns beyond indnkeyatts are only stored with it.
func (postgres) hasUniqueKey() string {
	return `SELECT EXISTS (SELECT FROM pg_catalog.pg_index
	WHERE indrelid = to_regclass({regclass}) AND indisunique AND indpred IS NULL AND indexprs IS NULL AND (
		SELECT bool_and(attname IN ({keynames})) FROM pg_catalog.pg_attribute
		WHERE attrelid = indrelid AND attnum = ANY ((indkey::int2[])[0:indnkeyatts - 1])))`
}
