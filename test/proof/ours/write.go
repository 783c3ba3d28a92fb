package ours

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
)

// A conn is a pool, one of its connections, or a transaction.
type conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (w *worker) write(ctx context.Context, r fence.Request) (a fence.Answer, err error) {
	for _, t := range r.Tokens {
		ctx = sqlfence.WithFence(ctx, sqlfence.Token(t))
	}
	if r.Serial != 0 {
		ctx = sqlfence.WithSerial(ctx, r.Serial)
	}
	if r.User != 0 {
		ctx = sqlfence.WithEditor(ctx, r.User)
	}
	held := w.heldTokens(r)
	if w.native != nil {
		return w.native.write(ctx, r, w.store, held)
	}
	if len(r.Steps) == 1 && r.Level == "" {
		a.Rows, err = w.step(ctx, w.db, r, r.Steps[0])
		return a, err
	}
	err = w.inTx(ctx, r, func(tx *sql.Tx) error {
		if len(held) > 0 {
			if err := w.store.Hold(ctx, tx, held...); err != nil {
				return err
			}
		}
		for _, s := range r.Steps {
			n, err := w.step(ctx, tx, r, s)
			if err != nil {
				return err
			}
			a.Rows = added(a.Rows, n)
		}
		return nil
	})
	return a, err
}

// heldTokens returns the tokens of the tables that only Hold fences. A program that observes doesn't call it.
func (w *worker) heldTokens(r fence.Request) (held []sqlfence.Token) {
	for _, s := range r.Steps {
		t := history.Find(history.All, s.Table)
		if t == nil || !t.Held || w.observes {
			continue
		}
		for _, token := range r.Tokens {
			if token.Name == t.Resource(s.Row) {
				held = append(held, sqlfence.Token(token))
			}
		}
	}
	return held
}

// added are the rows of several statements.
func added(rows, more int64) int64 {
	if rows+more < 0 {
		return fence.Uncounted
	}
	return rows + more
}

var isolation = map[string]sql.IsolationLevel{
	"": sql.LevelDefault, "read committed": sql.LevelReadCommitted,
	"repeatable read": sql.LevelRepeatableRead, "serializable": sql.LevelSerializable,
}

// inTx commits the writes of do, and records the coming commit in the same transaction.
func (w *worker) inTx(ctx context.Context, r fence.Request, do func(tx *sql.Tx) error) error {
	tx, err := w.db.BeginTx(ctx, &sql.TxOptions{Isolation: isolation[r.Level]})
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback()
		return notCommitted(err)
	}
	time.Sleep(time.Duration(r.Hold) * time.Millisecond)
	if _, err := tx.ExecContext(ctx, history.CommitOf(r.ID)); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// notCommitted is the error of a transaction that was never committed: that isn't unknown, whatever became of its statement.
func notCommitted(err error) error {
	if errors.Is(err, sqlfence.ErrUnknownOutcome) {
		return fmt.Errorf("in a transaction that wasn't committed: %v", err)
	}
	return err
}

// step writes by one statement, and returns how many rows that has changed.
func (w *worker) step(ctx context.Context, c conn, r fence.Request, s fence.Step) (int64, error) {
	form, literal := strings.CutSuffix(s.Form, " literal")
	form, prepared := strings.CutSuffix(form, " prepared")
	query := fmt.Sprintf(w.database.forms[form], s.Table)
	args := []any{r.ID, s.Row}
	switch {
	case form == "delete":
		return w.delete(ctx, c, r, s, query)
	case form == "returning":
		return count(c.QueryContext(ctx, query, args...))
	case form == "merge":
		_, err := c.ExecContext(ctx, query, args...)
		return fence.Uncounted, err // lib/pq doesn't count a MERGE
	case literal:
		return affected(c.ExecContext(ctx, withValues(r, s)))
	case prepared:
		return w.executePrepared(ctx, c, query, args)
	case form == "upsert" && w.database.rowFirst:
		n, err := affected(c.ExecContext(ctx, query, s.Row, r.ID)) // its key comes first
		return min(n, 1), err                                      // 2 for one that was updated
	}
	return affected(c.ExecContext(ctx, query, args...))
}

// withValues is the text of an UPDATE without arguments.
func withValues(r fence.Request, s fence.Step) string {
	return fmt.Sprintf("UPDATE %s SET value = %d WHERE id = %d", s.Table, r.ID, s.Row)
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func count(rows *sql.Rows, err error) (n int64, _ error) {
	if err != nil {
		return 0, err
	}
	for rows.Next() {
		n++
	}
	return n, cutShort(errors.Join(rows.Err(), rows.Close()))
}

// cutShort is the error of rows that may be those of a write that has landed, as the comment of ErrUnknownOutcome says.
func cutShort(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: while the rows are read: %w", sqlfence.ErrUnknownOutcome, err)
	}
	return err
}

func (w *worker) executePrepared(ctx context.Context, c conn, query string, args []any) (int64, error) {
	stmt, ok := w.prepared.Load(query)
	if !ok {
		prepared, err := w.db.PrepareContext(ctx, query)
		if err != nil {
			return 0, err
		}
		var loaded bool
		if stmt, loaded = w.prepared.LoadOrStore(query, prepared); loaded {
			_ = prepared.Close()
		}
	}
	s := stmt.(*sql.Stmt)
	if tx, ok := c.(*sql.Tx); ok {
		s = tx.StmtContext(ctx, s)
	}
	return affected(s.ExecContext(ctx, args...))
}

// delete sets the request's number in the session, because a trigger sees no new value of a deleted row. Without
// session settings delete first updates the row to the request's number, in the same transaction.
func (w *worker) delete(ctx context.Context, c conn, r fence.Request, s fence.Step, query string) (n int64, err error) {
	if w.database.deleting == "" {
		if c == w.db {
			err = w.inTx(ctx, r, func(tx *sql.Tx) error { n, err = w.delete(ctx, tx, r, s, query); return err })
			return n, err
		}
		update := fmt.Sprintf(w.database.forms["update"], s.Table)
		if n, err = affected(c.ExecContext(ctx, update, r.ID, s.Row)); err != nil || n == 0 {
			return n, err
		}
		n, err = affected(c.ExecContext(ctx, query, s.Row))
		return n + 1, err
	}
	if c == w.db {
		one, err := w.db.Conn(ctx)
		if err != nil {
			return 0, err
		}
		defer one.Close()
		c = one
	}
	if _, err := c.ExecContext(ctx, fmt.Sprintf(w.database.deleting, r.ID)); err != nil {
		return 0, fmt.Errorf("before a delete: %w", err)
	}
	n, err = affected(c.ExecContext(ctx, query, s.Row))
	w.forget(c)
	return n, err
}

// forget removes the request's number from the session. If this fails, the pool drops the connection.
func (w *worker) forget(c conn) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := c.ExecContext(ctx, w.database.deleted); err == nil {
		return
	}
	if one, ok := c.(*sql.Conn); ok {
		_ = one.Raw(func(any) error { return driver.ErrBadConn })
	}
}

func (w *worker) claim(ctx context.Context, r fence.Request) (a fence.Answer, err error) {
	s := r.Steps[0]
	err = w.inTx(ctx, r, func(tx *sql.Tx) error {
		take := fmt.Sprintf("UPDATE %s SET generation = generation + 1, value = %d WHERE id = %d", s.Table, r.ID, s.Row)
		if a.Rows, err = affected(tx.ExecContext(ctx, take)); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, fmt.Sprintf("SELECT generation FROM %s WHERE id = %d", s.Table, s.Row)).Scan(&a.Token)
	})
	return a, err
}

func (w *worker) read(ctx context.Context, r fence.Request) (a fence.Answer, err error) {
	s := r.Steps[0]
	mark := "0"
	if t := history.Find(history.All, s.Table); t.Mark != "" {
		mark = t.Mark
	}
	err = w.db.QueryRowContext(ctx, fmt.Sprintf("SELECT value, %s FROM %s WHERE id = %d", mark, s.Table, s.Row)).Scan(&a.Value, &a.Mark)
	return a, err
}
