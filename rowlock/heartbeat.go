package rowlock

import (
	"context"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Heartbeat records that a session is alive; it renews no lock. Call it more often than the silence of
// [Manager.FreeSilent]. An empty session is [sqlfence.ErrInvalid].
func (m *Manager) Heartbeat(ctx context.Context, session string) error {
	if session == "" {
		return invalid("heartbeat: the session is empty")
	}
	text, args := sqltext.Render(m.dialect, "UPDATE rowlocks SET heartbeat = {now} WHERE session = {stored {session}}",
		sqltext.Pieces{"session": sqltext.Value(session), "stored": sqltext.Func(m.dialect.stored)})
	// In a transaction, so that a deadlock with one that takes several locks is
	// repeated.
	err := transact(ctx, m.db, m.dialect, func(ctx context.Context, q querier) error {
		_, err := q.ExecContext(ctx, text, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("rowlock: heartbeat: %w", m.explain(ctx, err))
	}
	return nil
}
