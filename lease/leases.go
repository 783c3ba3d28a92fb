package lease

import (
	"database/sql"
	"errors"
	"sync/atomic"

	"github.com/sqlfence/sqlfence/internal/cleanup"
	"github.com/sqlfence/sqlfence/internal/share"
	"github.com/sqlfence/sqlfence/tokens"
)

// Leases grants leases in one database. It is safe for concurrent use and needs no closing. The zero value can't be
// used. Use one Leases for a whole process, because callers of one Leases that wait for a key share queries.
type Leases struct {
	database
	dialect *dialect

	takes    share.Batcher[*taking]
	releases share.Batcher[*releasing]
	queues   queues
	goingOn  atomic.Int32 // statements that continue after their callers have gone

	abandoned abandoned
	listener  listenerState
	sessions  *sessions
}

// New returns Leases on db. It sends nothing, and the caller closes db. The error is [ErrInvalid] and lists all faults.
func New(db *sql.DB, opts ...Option) (*Leases, error) {
	if db == nil {
		return nil, &invalidError{errors.New("lease: nil database")}
	}
	c, err := configure(db.Driver(), opts)
	if err != nil {
		return nil, err
	}
	ledgerOpts := []tokens.Option{tokens.WithDialect(c.spoken)}
	if c.Logger != nil {
		ledgerOpts = append(ledgerOpts, tokens.WithLogger(c.Logger))
	}
	if c.procedures {
		ledgerOpts = append(ledgerOpts, tokens.WithProcedures())
	}
	ledger, err := tokens.New(db, ledgerOpts...)
	if err != nil {
		return nil, err
	}
	m := &Leases{
		database: database{db: db, cleanup: cleanup.New(db), options: c, ledger: ledger},
		dialect:  c.dialect,
		queues:   queues{db: db},
		sessions: newSessions(db, c.dialect),
	}
	m.takes.Width, m.takes.Send, m.takes.Left = c.dialect.writers, m.takeAll, m.undoAbandoned
	m.releases.Width, m.releases.Send = c.dialect.writers, m.releaseAll
	if c.dialect.takeAll == nil {
		m.takes.Off()
		m.releases.Off()
	}
	m.listener.listener, m.listener.notify = c.listener, m.queues.wake
	return m, nil
}
