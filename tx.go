package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/sqlfence/sqlfence/rewrite"
)

// beginBase begins a transaction. On a base without BeginTx it does what
// database/sql would do.
func beginBase(ctx context.Context, c driver.Conn, opts driver.TxOptions) (driver.Tx, error) {
	if c, ok := c.(driver.ConnBeginTx); ok {
		return c.BeginTx(ctx, opts)
	}
	if opts.Isolation != 0 {
		return nil, errors.New("sql: driver does not support non-default isolation level")
	}
	if opts.ReadOnly {
		return nil, errors.New("sql: driver does not support read-only transactions")
	}
	tx, err := c.Begin()
	if err == nil && ctx.Err() != nil {
		_ = tx.Rollback() // the reason is the context's
		return nil, ctx.Err()
	}
	return tx, err
}

// followTx follows transactions that are begun and ended by statements: by one
// that ended with err. In doubt a transaction is taken for open: the next savepoint
// shows whether it is.
func (s *connState) followTx(query string, err error) {
	switch {
	case isSkip(err) || !s.followsTx(): // a skipped one comes again, prepared
	case err == nil:
		s.inTx = rewrite.InTransaction(s.settings.profile.dialect(), query, s.inTx)
	default: // how far it got isn't known
		s.inTx = s.inTx || s.changesTx(query)
	}
}

// followsTx reports whether transactions that statements begin and end have to be
// followed: Observe mode sets savepoints in them.
func (s *connState) followsTx() bool {
	return s.settings.observes() && s.settings.profile.errorEndsTx()
}

// changesTx reports whether the statement begins or ends transactions that have to be
// followed.
func (s *connState) changesTx(query string) bool {
	if !s.followsTx() {
		return false
	}
	d := s.settings.profile.dialect()
	return rewrite.InTransaction(d, query, false) || !rewrite.InTransaction(d, query, true)
}
