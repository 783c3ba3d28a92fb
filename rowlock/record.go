package rowlock

import (
	"context"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// record writes the lock that the row has now into rowlocks, kept alive by session.
func (t *Table) record(ctx context.Context, q querier, key []any, session string) error {
	if t.manager == nil {
		return nil
	}
	_, err := t.exec(ctx, q, `INSERT INTO rowlocks (table_name, row_key, user_id, session, since, expiry, heartbeat)
	SELECT {text {tablename}}, {keytext}, {holder}, {stored {text {session}}}, {since}, {expiry}, {now} `+
		`FROM {table} WHERE {row}
	`+t.dialect.upsert,
		key, sqltext.Pieces{"session": sqltext.Value(session)})
	return err
}

// unrecord deletes the lock of a row from rowlocks.
func (t *Table) unrecord(ctx context.Context, q querier, key []any) error {
	if t.manager == nil {
		return nil
	}
	_, err := t.exec(ctx, q, `DELETE FROM rowlocks
	WHERE table_name = {stored {tablename}} AND row_key = (SELECT {stored {keytext}} FROM {table} WHERE {row})`,
		key, nil)
	return err
}
