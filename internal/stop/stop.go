// Package stop ends, on MySQL's and MariaDB's servers, statements that their callers have given up.
// Their driver closes the connection when a context ends, or a time limit of its own, and the
// servers don't look at that before the statement ends: one that waits for a lock goes on waiting,
// for up to innodb_lock_wait_timeout, has others wait behind it, and is executed in the end, though
// no caller wants it.
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

// limit is how long a statement is looked for, so that it can be ended.
const limit = 2 * time.Second

// Abandoned calls send with a text to send, and ends it on the server if ctx has ended, or the
// connection broke, before the answer came. Behind the text stands a comment that identifies it in
// the server's list. A user sees his own sessions there, and may end them, without any privilege. A
// statement that can't be found or ended stays.
//
// It is ended in the background, by the queue: the pool may have no connection free before the caller has given back
// that of his transaction, and the server may be one that can't be reached.
func Abandoned(ctx context.Context, queue *cleanup.Queue, text string, send func(text string) error) error {
	mark := "sqlfence-" + rand.Text()
	err := send(text + " /* " + mark + " */")
	if err != nil && (ctx.Err() != nil || unanswered(err)) {
		queue.Add(&cleanup.Task{For: limit, Do: func(ctx context.Context, db *sql.DB) (done bool, err error) {
			return true, end(ctx, db, mark)
		}})
	}
	return err
}

// unanswered reports whether err means that a statement was sent, or may have been, and the server hasn't answered. It
// returns false for an error that it doesn't know, because that may come from reading an answer: the session lives
// then, and the KILL would end its next statement.
func unanswered(err error) bool {
	var dialing *net.OpError
	if errors.Is(err, driver.ErrBadConn) || errors.As(err, &dialing) && dialing.Op == "dial" {
		return false
	}
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network) ||
		dberr.IsMySQLInvalidConn(err)
}

// end ends the statement of another session that has mark in it. In a transaction a pooler leaves it
// all to one server; and as the KILL stands in a prepared text, none takes the number for that of a
// session of its own.
func end(ctx context.Context, db *sql.DB, mark string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	const find = "SELECT MAX(id) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND LOCATE(_utf8mb4'"
	var id sql.NullInt64
	query := find + mark + "', info) > 0"
	if err := tx.QueryRowContext(trusted.Context(ctx, query), query).Scan(&id); err != nil || !id.Valid {
		return err
	}
	for _, text := range []string{
		"PREPARE sqlfence_stop FROM 'KILL QUERY " + strconv.FormatInt(id.Int64, 10) + "'",
		"EXECUTE sqlfence_stop",
		"DEALLOCATE PREPARE sqlfence_stop",
	} {
		if _, err := tx.ExecContext(trusted.Context(ctx, text), text); err != nil {
			return err
		}
	}
	return nil
}
