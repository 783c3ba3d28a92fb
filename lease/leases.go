package lease

import (
	"database/sql"
	"errors"

	"github.com/sqlfence/sqlfence/tokens"
)

// Leases grants leases on keys in one database. It is safe for use by several
// goroutines at once, and needs no closing: what it keeps, a session for
// ephemeral leases or a listener, it keeps only while there is a lease or a
// waiter that needs it. Share one for a database: waiters of one Leases form a
// line, and only the first in the line asks the database.
type Leases struct {
	database
	dialect  dialect
	defaults []Term

	queues   queues
	listener listenerState
	sessions *sessions
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
	ledgerOpts := []tokens.Option{tokens.WithDialect(c.spoken)}
	if c.logger != nil {
		ledgerOpts = append(ledgerOpts, tokens.WithLogger(c.logger))
	}
	ledger, err := tokens.New(db, ledgerOpts...)
	if err != nil {
		return nil, err
	}
	m := &Leases{
		database: database{db: db, ledger: ledger, logger: c.logger},
		dialect:  c.dialect,
		defaults: c.defaults,
		queues:   queues{db: db},
		sessions: newSessions(db, c.dialect),
	}
	m.listener.listener, m.listener.notify = c.listener, m.queues.wake
	return m, nil
}
