package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"strings"

	"github.com/sqlfence/sqlfence/internal/cleanup"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
	"github.com/sqlfence/sqlfence/tokens"
)

type database struct {
	db        *sql.DB
	cleanup   *cleanup.Queue // work that continues after its caller has gone
	options   *config
	ledger    *tokens.Store
	timelines sqltext.Timelines
}

func (d *database) log() *slog.Logger { return d.options.Log() }

// query sends a statement and calls scan for each row. After a broken connection it sends the statement again, so the
// statement may be executed twice.
func (d *database) query(ctx context.Context, scan func(*sql.Rows) error, s statement) error {
	return d.sendAgain(func(bool) error {
		return dberr.Resend(ctx, dberr.IsRolledBack, func() error { return queryOnce(ctx, d.db, scan, s) })
	})
}

// queryAgain is query for a statement that has a different result if it is executed twice. again reports whether the
// statement was sent twice, because the connection broke before the response. queryAgain takes a connection from the
// pool first, because database/sql itself would otherwise send the statement again without a report.
func (d *database) queryAgain(ctx context.Context, scan func(*sql.Rows) error, s statement) (again bool, err error) {
	err = d.sendAgain(func(second bool) error {
		again = second
		if second {
			return d.query(ctx, scan, s)
		}
		return dberr.Resend(ctx, dberr.IsRolledBack, func() error { return d.queryOn(ctx, scan, s) })
	})
	return again, err
}

// conn takes a connection for a statement that is sent under ctx, while its caller waits.
func (d *database) conn(ctx context.Context) (*sql.Conn, error) {
	caller := callerOf(ctx)
	conn, err := d.db.Conn(caller)
	if err != nil {
		return nil, &unsentError{dialectopt.Ended(caller, err)}
	}
	return conn, nil
}

// queryOn sends a statement once, on a connection that was taken from the pool before.
func (d *database) queryOn(ctx context.Context, scan func(*sql.Rows) error, s statement) error {
	conn, err := d.conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return queryOnce(ctx, conn, scan, s)
}

// sendAgain calls send, and calls it again after a broken connection, because all idle connections of the pool may be
// broken. The database may have executed the statement the first time.
func (d *database) sendAgain(send func(second bool) error) error {
	err := send(false)
	for more := d.db.Stats().Idle + 1; more > 0 && errors.Is(err, driver.ErrBadConn); more-- {
		err = send(true)
	}
	return err
}

// exec sends a statement and returns how many rows it changed.
func (d *database) exec(ctx context.Context, s statement) (n int64, err error) {
	err = dberr.Resend(ctx, dberr.IsRolledBack, func() error {
		return s.send(ctx, d.db, func(db querier, text string) error {
			result, err := db.ExecContext(trusted.Context(ctx, text), text, s.args...)
			if err == nil {
				n, err = result.RowsAffected()
			}
			return err
		})
	})
	return n, err
}

func (d *database) sendBounded(ctx context.Context, f sqltext.Bounded, send func(text string) error) error {
	found, err := d.timelines.Send(f, send, func(text string) error {
		_, err := d.exec(callerOf(ctx), statement{text: text})
		return err
	})
	if found {
		d.log().Warn("lease: " + sqltext.Unreadable)
	}
	return err
}

// A querier is a database, a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// send calls do with the statement's text, in a transaction if the statement needs one.
func (s statement) send(ctx context.Context, db querier, do func(db querier, text string) error) error {
	if s.reset != nil {
		s.reset()
	}
	begins, ok := db.(interface {
		BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
	})
	if s.tx == nil || !ok {
		return do(db, s.text)
	}
	if s.alone != "" {
		if done, err := s.sendAlone(ctx, db, do); done || err != nil {
			return err
		}
	}
	tx, err := begins.BeginTx(ctx, s.tx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, text := range s.before {
		if _, err := tx.ExecContext(trusted.Context(ctx, text), text); err != nil {
			return err
		}
	}
	if err := do(tx, s.text); err != nil {
		return err
	}
	return tx.Commit()
}

// sendAlone sends s.alone, a form of the statement that needs no transaction: a process that stops in a transaction
// would leave the transaction open on the server, with the locks of its rows. done is false if s.alone changed no row;
// then the caller must send the statement in a transaction.
func (s statement) sendAlone(
	ctx context.Context, db querier, do func(db querier, text string) error,
) (done bool, err error) {
	if pool, ok := db.(*sql.DB); ok { // the query s.result must run in the same session
		conn, err := pool.Conn(ctx)
		if err != nil {
			return false, err
		}
		defer conn.Close()
		db = conn
	}
	result, err := db.ExecContext(trusted.Context(ctx, s.alone), s.alone)
	if dberr.IsUnknownVariable(err) { // MySQL is going to remove binlog_format
		return false, nil
	}
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	if err != nil || n == 0 || s.result == "" {
		return n > 0, err
	}
	return true, do(db, s.result)
}

func queryOnce(ctx context.Context, db querier, scan func(*sql.Rows) error, s statement) error {
	return s.send(ctx, db, func(db querier, text string) error {
		return dialectopt.EachRow(ctx, db, scan, text, s.args...)
	})
}

func ignore(*sql.Rows) error { return nil }

// mayHaveCommitted reports whether a statement that ended with err may have committed: true unless the server reports
// that the statement failed. The error of a server or pooler about a broken connection isn't such a report.
func mayHaveCommitted(err error) bool {
	if !wasSent(err) {
		return false
	}
	code := dberr.SQLState(err)
	return code == "" && !dberr.IsClosed(err) || code == dberr.CompletionUnknown ||
		strings.HasPrefix(code, dberr.ConnectionClass) || strings.HasPrefix(code, dberr.InterventionClass)
}
