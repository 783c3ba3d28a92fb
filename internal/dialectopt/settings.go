package dialectopt

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/sqlfence/sqlfence/internal/trusted"
)

// restoring is the timeout of the statements that restore a session's settings.
const restoring = 5 * time.Second

// Exec sends sqlfence's own statements on a connection in turn: change, which changes session settings, texts, and
// restore, which restores the settings, even after ctx has ended. If a statement of change or restore fails, Exec
// closes the connection, so that no other user of the pool gets the changed settings.
func Exec(ctx context.Context, conn *sql.Conn, change, texts, restore []string) error {
	if len(change) == 0 {
		return execEach(ctx, conn, texts)
	}
	err := execEach(ctx, conn, change)
	if err == nil {
		err = execEach(ctx, conn, texts)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoring)
		defer cancel()
		failed := execEach(ctx, conn, restore)
		if failed == nil {
			return err
		}
		err = errors.Join(err, failed)
	}
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	return err
}

func execEach(ctx context.Context, conn *sql.Conn, texts []string) error {
	for _, text := range texts {
		if _, err := conn.ExecContext(trusted.Context(ctx, text), text); err != nil {
			return err
		}
	}
	return nil
}
