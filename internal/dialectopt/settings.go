package dialectopt

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/sqlfence/sqlfence/internal/trusted"
)

// restoring is how long the statements that restore a session's settings may take.
const restoring = 5 * time.Second

// Exec sends statements of sqlfence's own on a connection, one after the other: change, which changes settings of its
// session, texts, and restore, which restores the settings. The settings are restored also after ctx has ended. If a
// statement of change or restore fails, the connection is closed, so that no other user of the pool gets it with these
// settings.
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
