package rowlock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

type sqlite struct{ sqltext.Dialect }

// sendUpdate sends a second statement for a refusal, to read the state. In a transaction no client
// can come between the two, because the first one has made this connection the only writer, even
// where it changed nothing.
func (d sqlite) sendUpdate(ctx context.Context, q querier, t *Table, u lockUpdate) (rowState, error) {
	text, args := sqltext.Render(d, "UPDATE {table} SET {set} WHERE {row} AND {condition} RETURNING {state}, "+
		"1{load}", u.pieces(t), t.pieces)
	s, err := readState(ctx, q, text, args, u.dest, 6)
	if !errors.Is(err, sql.ErrNoRows) {
		return s, err
	}
	text, args = t.render("SELECT {state} FROM {table} WHERE {row}", u.key, nil)
	return readState(ctx, q, text, args, nil, 0)
}

func (sqlite) unfit() string { return "" }

func (sqlite) version() string { return "{serial}" }

// versioned: SQLite would find the text '3' equal to 3.
func (sqlite) versioned() string { return "typeof({serial}) = 'integer'" }

func (sqlite) keyText() string  { return "json_array({keycolumns})" }
func (sqlite) keyComma() string { return "," }

// lockRow: the first write makes the connection the only writer.
func (sqlite) lockRow() string { return "" }

// isolation: SQLite's transactions have one level, which drivers take for the default.
func (sqlite) isolation() sql.IsolationLevel { return sql.LevelDefault }

func (sqlite) set(
	ctx context.Context, q querier, t *Table, list string, key []any, others sqltext.Pieces,
) (rowState, error) {
	return setReturning(ctx, q, t, list, key, others)
}

func (sqlite) user(id driver.Value) driver.Value { return id }

func (sqlite) abandoning(_ context.Context, _ *sql.DB, text string, send func(text string) error) error {
	return send(text)
}

func (sqlite) severalStatements() bool          { return false }
func (sqlite) create() string                   { return createWith("bigint") }
func (sqlite) upsert() string                   { return upsert }
func (sqlite) binary(expression string) string  { return expression }
func (sqlite) stored(value string) string       { return value }
func (sqlite) shown(column string) string       { return column }
func (sqlite) same(column, value string) string { return column + " = " + value }

func (sqlite) checkTime(typ string) (want string) {
	if !isInteger(typ) {
		return "integer, for milliseconds since 1970"
	}
	return ""
}

func (sqlite) listColumns() string {
	return `SELECT lower(name), lower(type), "notnull" FROM pragma_table_info({tableargs})`
}

func (sqlite) hasUniqueKey() string {
	return `SELECT COALESCE((SELECT min(lower(name) IN ({keynames})) ` +
		`FROM pragma_table_info({tableargs}) WHERE pk > 0), 0)
	OR EXISTS (SELECT 1 FROM pragma_index_list({tableargs}) AS i WHERE i."unique" AND NOT i.partial
		AND (SELECT min(COALESCE(lower(name), '') IN ({keynames})) FROM pragma_index_info(i.name)))`
}
