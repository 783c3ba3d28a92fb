package lease

import (
	"context"
	"database/sql"
	"time"

	"github.com/sqlfence/sqlfence/internal/own"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// writers: a file has one, and a second would wait for it by sleeping.
func (sqlite) writers() int { return 1 }

// takeAll is take for several keys in one transaction. It settles those that are taken.
func (sqlite) takeAll(ctx context.Context, db *database, asked []*taking) (ok, committing bool, _ error) {
	sent := time.Now()
	tx, err := db.db.BeginTx(ctx, nil)
	if err != nil {
		return true, false, err
	}
	defer tx.Rollback()
	for _, t := range asked {
		o := outcome{sent: sent}
		if err := takeInTx(ctx, tx, t.r, &o); err != nil {
			return true, false, err
		}
		if o.won != nil {
			t.o = &o
		}
	}
	return true, true, tx.Commit()
}

// takeInTx takes a lease that is free or has expired.
func takeInTx(ctx context.Context, tx *sql.Tx, r *request, o *outcome) error {
	take := statement{sqliteTexts.take, []any{r.key, r.lockID, r.owner, sqltext.SQLite.Ticks(r.ttl)}}
	if err := queryOnce(ctx, tx, o.scanWon, take); err != nil || o.won == nil {
		return err
	}
	_, err := tx.ExecContext(own.Context(ctx, sqliteTexts.issue), sqliteTexts.issue, r.key, o.won.Token.Value)
	return err
}

// releaseAll is one transaction.
func (sqlite) releaseAll(ctx context.Context, db *database, all []*releasing, notify bool) (committing bool, _ error) {
	conn, err := db.db.Conn(ctx) // on which package sql sends once
	if err != nil {
		return false, err
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	for _, r := range all {
		scan := func(rows *sql.Rows) error { return rows.Scan(releaseRow(notify, &r.key)...) }
		if err := queryOnce(ctx, tx, scan, sqlite{}.release(r.lockID, r.release, notify)); err != nil {
			return false, err
		}
	}
	return true, tx.Commit()
}
