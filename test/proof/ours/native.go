package ours

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
	"github.com/sqlfence/sqlfence/tokens"
)

// A native writes by pgx without database/sql: statements, transactions, and transactions that send theirs together.
type native struct {
	db    *fencepgx.DB
	forms map[string]string
}

func openNative(ctx context.Context, d *database, dsn string, opts []sqlfence.Option) (*native, error) {
	pool, err := pgxpool.New(ctx, dsn+"&pool_max_conns=16")
	if err != nil {
		return nil, err
	}
	db, err := fencepgx.New(pool, opts...)
	if err != nil {
		return nil, err
	}
	return &native{db, d.forms}, nil
}

// A sender is a pool or a transaction.
type sender interface {
	Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

func (n *native) write(ctx context.Context, r fence.Request, store *tokens.Store, held []sqlfence.Token) (a fence.Answer, err error) {
	if len(r.Steps) == 1 && r.Level == "" && r.Steps[0].Form != "delete" {
		a.Rows, err = n.step(ctx, n.db, r, r.Steps[0])
		return a, err
	}
	tx, err := n.db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.TxIsoLevel(r.Level)})
	if err != nil {
		return a, err
	}
	if len(held) > 0 {
		err = fencepgx.Hold(ctx, tx, store, held...)
	}
	if err == nil {
		a.Rows, err = n.steps(ctx, tx, r)
	}
	if err == nil {
		time.Sleep(time.Duration(r.Hold) * time.Millisecond)
		_, err = tx.Exec(ctx, history.CommitOf(r.ID))
	}
	if err != nil {
		ending, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = tx.Rollback(ending)
		return a, notCommitted(err)
	}
	return a, tx.Commit(ctx)
}

// steps sends the steps of a transaction, one after the other or together. A setting of the session names the request
// for the triggers of DELETE.
func (n *native) steps(ctx context.Context, tx pgx.Tx, r fence.Request) (rows int64, err error) {
	if _, err := tx.Exec(ctx, fmt.Sprintf("SELECT set_config('proof.op', '%d', true)", r.ID)); err != nil {
		return 0, err
	}
	if r.ID%2 == 0 {
		return n.together(ctx, tx, r)
	}
	for _, s := range r.Steps {
		changed, err := n.step(ctx, tx, r, s)
		if err != nil {
			return 0, err
		}
		rows = added(rows, changed)
	}
	return rows, nil
}

func (n *native) together(ctx context.Context, tx pgx.Tx, r fence.Request) (rows int64, err error) {
	var b pgx.Batch
	for _, s := range r.Steps {
		query, args := n.statement(r, s)
		b.Queue(query, args...)
	}
	results := tx.SendBatch(ctx, &b)
	for _, s := range r.Steps {
		tag, err := results.Exec()
		if err != nil {
			_ = results.Close()
			return 0, err
		}
		rows = added(rows, changed(s, tag))
	}
	return rows, results.Close()
}

func (n *native) step(ctx context.Context, c sender, r fence.Request, s fence.Step) (int64, error) {
	query, args := n.statement(r, s)
	if s.Form != "returning" {
		tag, err := c.Exec(ctx, query, args...)
		return changed(s, tag), err
	}
	rows, err := c.Query(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	var returned int64
	for rows.Next() {
		returned++
	}
	rows.Close()
	return returned, cutShort(rows.Err())
}

// changed is how many rows a step has changed, which isn't asked of a MERGE, as of other drivers.
func changed(s fence.Step, tag pgconn.CommandTag) int64 {
	if s.Form == "merge" {
		return fence.Uncounted
	}
	return tag.RowsAffected()
}

// statement is the text of a step and its arguments. pgx prepares by itself.
func (n *native) statement(r fence.Request, s fence.Step) (query string, args []any) {
	form, _ := strings.CutSuffix(s.Form, " prepared")
	switch form {
	case "delete":
		return fmt.Sprintf(n.forms[form], s.Table), []any{s.Row}
	case "update literal":
		return withValues(r, s), nil
	}
	return fmt.Sprintf(n.forms[form], s.Table), []any{r.ID, s.Row}
}
