package rowlock

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"

	my "github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/stop"
)

// mysql is the dialect of MySQL and MariaDB, with times as bigint, in µs since 1970. The field versioned doesn't test
// the type of the version, because Go code does after reading it.
var mysql = sync.OnceValue(func() *dialect {
	return &dialect{
		spelling: spelling{
			Dialect: my.Text,
			binary:  binaryMySQL,
			stored:  storedMySQL,
			shown:   func(column string) string { return "CONVERT(" + column + " USING utf8mb4)" },
			// A number and a text would be compared as floating numbers, where '7x' is 7.
			same:    func(column, value string) string { return equals(storedMySQL(column), storedMySQL(value)) },
			equals:  "=",
			user:    plainUser,
			version: "{serial}", versioned: "TRUE",
			keyText: my.Text.Convert("JSON_ARRAY({keycolumns})", sqltext.Text), keyComma: ", ",
		},
		sendUpdate:     sendUpdateMySQL,
		set:            setMySQL,
		multiStatement: true,
		abandoning:     stop.Abandoned,
		upsert: `ON DUPLICATE KEY UPDATE user_id = VALUES(user_id), session = VALUES(session),
		since = VALUES(since), expiry = VALUES(expiry), heartbeat = VALUES(heartbeat)`,
		create: createMySQL,
		unfit: my.Unfit("rowlocks", []my.Column{
			{Name: "table_name", Bytes: 520}, {Name: "row_key", Bytes: 2500}, {Name: "user_id", Bytes: 2500},
			{Name: "session", Bytes: 2500}, {Name: "since"}, {Name: "expiry"}, {Name: "heartbeat"},
		}, "table_name, row_key"),
		lockRow: "SELECT 1 FROM {table} WHERE {row} FOR UPDATE",
		// Above this level, looking for a missing row of rowlocks keeps other sessions from adding one.
		isolation: sql.LevelReadCommitted,
		wantsTime: "bigint, for microseconds since 1970",
		isTime:    func(typ string) bool { return strings.HasPrefix(typ, "bigint") },
		listColumns: `SELECT LOWER(column_name), LOWER(column_type), is_nullable = _utf8mb4'NO' FROM information_schema.columns
	WHERE table_schema = COALESCE({schema}, DATABASE()) AND table_name = {bare}`,
		hasUniqueKey: `SELECT EXISTS (SELECT 1 FROM information_schema.statistics
	WHERE table_schema = COALESCE({schema}, DATABASE()) AND table_name = {bare} AND non_unique = 0
	GROUP BY index_name HAVING COUNT(column_name) = COUNT(*) AND MIN(LOWER(column_name) IN ({keynames})) ` +
			`AND MAX(sub_part) IS NULL)`,
	}
})

// createMySQL keeps the last byte of each column free, because an empty sql_mode cuts what is too long.
const createMySQL = `CREATE TABLE IF NOT EXISTS rowlocks (
	table_name varbinary(520)  NOT NULL,
	row_key    varbinary(2500) NOT NULL CHECK (LENGTH(row_key) < 2500),
	user_id    varbinary(2500) NOT NULL CHECK (LENGTH(user_id) < 2500),
	session    varbinary(2500) NOT NULL CHECK (LENGTH(session) < 2500),
	since      bigint NOT NULL,
	expiry     bigint NOT NULL,
	heartbeat  bigint NOT NULL,
	PRIMARY KEY (table_name, row_key)
) ENGINE=InnoDB`

// binaryMySQL makes the comparison of a text binary, because most collations treat A as equal to a, and some a
// full-width 0 as equal to 0.
func binaryMySQL(expression string) string { return "CAST(" + expression + " AS BINARY)" }

// storedMySQL is the SQL for a value as UTF-8 bytes, whatever the session's character set. COALESCE is there because
// under the sql_mode EMPTY_STRING_IS_NULL an empty argument is NULL.
func storedMySQL(value string) string {
	return "COALESCE(" + binaryMySQL("CONVERT("+value+" USING utf8mb4)") + ", " + my.Text.Text("") + ")"
}

// sendUpdateMySQL locks and reads the row, decides, and writes. It decides by the time of the call: a lock that lapses
// during the wait for the row still refuses the request.
func sendUpdateMySQL(ctx context.Context, q owned, t *Table, u lockUpdate) (rowState, error) {
	send := func(text string, dest []any) (rowState, error) {
		text, args := sqltext.Render(my.Text, text, u.fragments(t), t.fragments)
		var s rowState
		err := stop.Abandoned(ctx, t.cleanup, text, func(text string) (err error) {
			s, err = readState(ctx, q, text, args, dest, 6)
			return err
		})
		return s, err
	}
	s, err := send("SELECT {state}, {condition} FROM {table} WHERE {row} FOR UPDATE", nil)
	if _, integer := s.serial.(int64); err != nil || !s.granted || !integer {
		s.granted = false
		return s, err
	}
	text, args := sqltext.Render(my.Text, "UPDATE {table} SET {set} WHERE {row}", u.fragments(t), t.fragments)
	if _, err := q.exec(ctx, text, args...); err != nil {
		return s, err
	}
	s, err = send("SELECT {state}, {mine} OR {free}{load} FROM {table} WHERE {row}", u.dest)
	if err == nil && !s.granted {
		err = fmt.Errorf("the column %s stores the user's ID as %q; give the column a type that keeps the ID",
			t.columns.by, s.by.String)
	}
	return s, err
}

// setMySQL locks the row first, so that the clock is read after any wait.
func setMySQL(
	ctx context.Context, q owned, t *Table, list string, key []any, others sqltext.Fragments,
) (rowState, error) {
	if err := t.lock(ctx, q, key); err != nil {
		return rowState{}, err
	}
	if _, err := t.exec(ctx, q, "UPDATE {table} SET "+list+" WHERE {row}", key, others); err != nil {
		return rowState{}, err
	}
	text, args := t.render("SELECT {state} FROM {table} WHERE {row}", key, others)
	return readState(ctx, q, text, args, nil, 0)
}
