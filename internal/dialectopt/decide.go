package dialectopt

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/session"
)

// Decide is [EachRow] for a query that a write depends on: if the server may lag behind the primary, the error is
// [sqlfence.ErrStandby], and scan isn't called. Decide takes no additional round trip.
func Decide(
	ctx context.Context, db Queries, d *session.Dialect, scan func(Row) error, query string, args ...any,
) error {
	return EachRow(ctx, db, func(rows *sql.Rows) error {
		standby, found, err := decided(rows)
		switch {
		case err != nil || !standby && !found:
			return err
		case standby:
			return sqlfence.ErrStandby
		}
		return scan(&decidedRow{rows})
	}, d.Deciding(query), args...)
}

// A Row is a row of a query.
type Row interface{ Scan(dest ...any) error }

// decided reads the columns that Deciding adds before the query's.
func decided(rows *sql.Rows) (standby, found bool, err error) {
	columns, err := rows.Columns()
	if err == nil && len(columns) < session.Front { // of a mock
		err = fmt.Errorf("the answer has %d columns, and doesn't say who has answered", len(columns))
	}
	if err != nil {
		return false, false, err
	}
	into := make([]any, len(columns))
	for i := range into {
		into[i] = new(any)
	}
	into[0], into[1] = &standby, &found
	err = rows.Scan(into...)
	return standby, found, err
}

// A decidedRow is a row without the columns that Deciding adds.
type decidedRow struct{ rows *sql.Rows }

func (r *decidedRow) Scan(dest ...any) error {
	into := make([]any, session.Front, session.Front+len(dest))
	for i := range into {
		into[i] = new(any)
	}
	return r.rows.Scan(append(into, dest...)...)
}
