package rowlock

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	lite "github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// sqlite is the dialect of SQLite. The field versioned tests the type, because SQLite would find the text '3' equal to
// 3. lockRow is empty, because the first write makes the connection the only writer. isolation is unset, because SQLite
// has only one level, which drivers use by default.
var sqlite = sync.OnceValue(func() *dialect {
	return &dialect{
		spelling: spelling{
			Dialect: lite.Text,
			binary:  asItIs, stored: asItIs, shown: asItIs,
			same:    equals,
			equals:  "=",
			user:    plainUser,
			version: "{serial}", versioned: "typeof({serial}) = 'integer'",
			keyText: "json_array({keycolumns})", keyComma: ",",
		},
		sendUpdate:  sendUpdateSQLite,
		set:         setReturning,
		abandoning:  byTheDriver,
		upsert:      upsert,
		create:      createWith("bigint"),
		isolation:   sql.LevelDefault,
		wantsTime:   "integer, for milliseconds since 1970",
		isTime:      isInteger,
		listColumns: `SELECT lower(name), lower(type), "notnull" FROM pragma_table_info({tableargs})`,
		hasUniqueKey: `SELECT COALESCE((SELECT min(lower(name) IN ({keynames})) ` +
			`FROM pragma_table_info({tableargs}) WHERE pk > 0), 0)
	OR EXISTS (SELECT 1 FROM pragma_index_list({tableargs}) AS i WHERE i."unique" AND NOT i.partial
		AND (SELECT min(COALESCE(lower(name), '') IN ({keynames})) FROM pragma_index_info(i.name)))`,
	}
})

// sendUpdateSQLite sends a second statement for a refusal, to read the state. In a transaction no client comes between
// the two, because the first one makes the connection the only writer, even if it changed nothing.
func sendUpdateSQLite(ctx context.Context, q owned, t *Table, u lockUpdate) (rowState, error) {
	text, args := sqltext.Render(lite.Text, "UPDATE {table} SET {set} WHERE {row} AND {condition} RETURNING {state}, "+
		"1{load}", u.fragments(t), t.fragments)
	s, err := readState(ctx, q, text, args, u.dest, 6)
	if !errors.Is(err, sql.ErrNoRows) {
		return s, err
	}
	text, args = t.render("SELECT {state} FROM {table} WHERE {row}", u.key, nil)
	return readState(ctx, q, text, args, nil, 0)
}
