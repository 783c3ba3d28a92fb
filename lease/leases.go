package lease

import (
	"database/sql"
	"errors"
	"log/slog"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/tokens"
)

// Leases grants leases on keys in one database. It is safe for use by several
// goroutines at once, and needs no closing: what it keeps, a session for
// ephemeral leases or a listener, it keeps only while there is a lease or a
// waiter that needs it. Share one for a database: waiters of one Leases form a
// line, and only the first in the line asks the database.
type Leases struct {
	db       *sql.DB
	dialect  sqlfence.Dialect
	sql      statements
	ledger   *tokens.Store
	logger   *slog.Logger // nil: slog.Default() at the time of logging
	defaults []Term

	timelines sqltext.Timelines

	lines   lines
	hearing hearing
	session session
}

// New returns Leases on db, which may be fenced by sqlfence or not, and stays
// the caller's to close. It sends nothing to the database; see [Leases.Setup].
//
// By default the dialect is found from the driver (an error if it can't be, see
// [WithDialect]), warnings go to [slog.Default], and waiters poll.
func New(db *sql.DB, opts ...Option) (*Leases, error) {
	if db == nil {
		return nil, errors.New("lease: nil database")
	}
	c, err := configure(db.Driver(), opts)
	if err != nil {
		return nil, err
	}
	ledgerOpts := []tokens.Option{tokens.WithDialect(c.dialect)}
	if c.logger != nil {
		ledgerOpts = append(ledgerOpts, tokens.WithLogger(c.logger))
	}
	ledger, err := tokens.New(db, ledgerOpts...)
	if err != nil {
		return nil, err
	}
	l := &Leases{
		db:       db,
		dialect:  c.dialect,
		sql:      statementsFor(c.dialect, c.listener != nil),
		ledger:   ledger,
		logger:   c.logger,
		defaults: c.defaults,
	}
	l.session.db, l.session.turn = db, make(chan struct{}, 1)
	l.session.turn <- struct{}{}
	l.lines.db = db
	l.hearing.listener, l.hearing.heard = c.listener, l.lines.wake
	return l, nil
}

func (l *Leases) log() *slog.Logger {
	if l.logger == nil {
		return slog.Default()
	}
	return l.logger
}
