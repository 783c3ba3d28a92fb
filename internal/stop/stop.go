// Package stop ends abandoned statements on MySQL and MariaDB servers. The driver closes the connection when a context
// or the driver's time limit ends. The server doesn't notice before the statement ends: a statement that waits for a
// lock waits for up to innodb_lock_wait_timeout, blocks other statements, and is executed in the end, though no caller
// wants it.
package stop

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/sqlfence/sqlfence/internal/cleanup"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// limit bounds the search for a statement to end.
const limit = 2 * time.Second

// Abandoned calls send with text and a comment, and ends the statement on the server if ctx ended, or the connection
// broke, before the response. The comment identifies the statement in the server's process list. A user needs no
// privilege to see and end the user's own sessions. A statement that can't be found or ended continues.
//
// The queue ends the statement in the background: the pool may have no free connection before the caller returns its
// transaction's connection, and the server may be unreachable.
func Abandoned(ctx context.Context, queue *cleanup.Queue, text string, send func(text string) error) error {
	mark := "sqlfence-" + rand.Text()
	err := send(text + " /* " + mark + " */")
	if err != nil && (ctx.Err() != nil || unanswered(err)) {
		looked := false
		queue.Add(&cleanup.Task{For: limit, Do: func(ctx context.Context, db *sql.DB) (done bool, err error) {
			found, err := end(ctx, db, mark)
			// A second look is needed: at the first, the server may not have begun the statement, and a KILL may not
			// reach it.
			done = looked && !found
			looked = looked || err == nil
			return done, err
		}})
	}
	return err
}

// unanswered reports whether err means that a statement was or may have been sent, and the server hasn't responded. It
// returns false for an unknown error, with which the driver may have failed to read a response: then the session
// continues, and the KILL would end its next statement.
func unanswered(err error) bool {
	var dialing *net.OpError
	if errors.Is(err, driver.ErrBadConn) || errors.As(err, &dialing) && dialing.Op == "dial" {
		return false
	}
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network) ||
		dberr.IsMySQLInvalidConn(err)
}

// end ends another session's statement, found by mark, and reports whether it found the statement. Within a transaction
// a pooler sends all statements to one server. The KILL is inside of a PREPARE, because a pooler would take the number
// in a plain KILL for one of the pooler's sessions.
func end(ctx context.Context, db *sql.DB, mark string) (found bool, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	const find = "SELECT MAX(id) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND LOCATE(_utf8mb4'"
	var id sql.NullInt64
	query := find + mark + "', info) > 0 LIMIT 1"
	if err := tx.QueryRowContext(trusted.Context(ctx, query), query).Scan(&id); err != nil || !id.Valid {
		return false, err
	}
	for _, text := range []string{
		"PREPARE sqlfence_stop FROM 'KILL QUERY " + strconv.FormatInt(id.Int64, 10) + "'",
		"EXECUTE sqlfence_stop",
		"DEALLOCATE PREPARE sqlfence_stop",
	} {
		if _, err := tx.ExecContext(trusted.Context(ctx, text), text); err != nil {
			return true, err
		}
	}
	return true, nil
}
