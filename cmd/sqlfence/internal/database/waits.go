package database

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/sqlfence/sqlfence/internal/dialectopt"
)

// A Wait describes a session that waits for a name: to issue the name's next token, to take its lease, or to write with
// its token. A field is empty if the database doesn't show the value to this role.
type Wait struct {
	Name  string `json:"name"`
	Who   string `json:"who"`   // the session: user@address, pid N, application
	Since string `json:"since"` // when the waiting statement, or its wait, began
	For   string `json:"for"`   // the session that has to end its transaction first, as in Who
	Does  string `json:"does"`  // state of the blocking session, such as "idle in transaction"
	Began string `json:"began"` // when the blocking session's transaction began
}

// ID identifies a wait. It stays the same when the blocking session changes its state.
func (w Wait) ID() string { return w.Who + w.Since }

// Waits returns the sessions that have waited for more than a second for a name of the ledger or for the row of a
// lease. Errors are the database's, for example if the role may not see other transactions.
func (s Source) Waits(ctx context.Context, db *sql.DB) (found []Wait, err error) {
	if s.waits == nil {
		return nil, nil
	}
	err = dialectopt.EachRow(ctx, db, func(rows *sql.Rows) error {
		var w Wait
		err := rows.Scan(&w.Name, &w.Who, &w.Since, &w.For, &w.Does, &w.Began)
		if !slices.ContainsFunc(found, func(other Wait) bool { return other.Who == w.Who }) {
			found = append(found, w)
		}
		return err
	}, s.waits(s))
	if err != nil {
		return nil, fmt.Errorf("who waits: %w", err)
	}
	return found, nil
}
