package lease

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/setuperr"
)

// Setup creates the tables fencing_tokens and fencing_leases, or a missing index or column; it includes
// [tokens.Store.Setup]. Processes can call it at every start, concurrently. If a table can't be used, the error names
// the reason. A missing privilege is a [*sqlfence.SetupError].
func (m *Leases) Setup(ctx context.Context) error {
	if err := m.ledger.Setup(ctx); err != nil {
		return err
	}
	if err := m.usable(ctx, false, m.dialect.create); err != nil {
		return err
	}
	if m.listener.listener != nil || m.options.procedures {
		if err := m.usable(ctx, true, m.dialect.addNotify); err != nil {
			return err
		}
	}
	if err := m.createProcedures(ctx); err != nil {
		return err
	}
	return m.index(ctx)
}

// usable checks with the dialect's probe that leases can be taken from the table fencing_leases; waits is passed to the
// probe. If the probe fails, usable executes the statement change, which creates the table or adds a column, and probes
// once more. If the role lacks a privilege on the table, the table exists, so usable returns an error without executing
// change.
func (m *Leases) usable(ctx context.Context, waits bool, change string) error {
	err := m.dialect.probe(ctx, &m.database, waits)
	if err == nil {
		return nil
	}
	if dberr.SQLState(err) != dberr.InsufficientPrivilege {
		if setuperr.Lacks(err, m.needs()) {
			m.options.WarnOfSecond(ctx, m.db, m.needs())
		}
		if err := m.create(ctx, change); err != nil {
			return fmt.Errorf("lease: setup: create fencing_leases: %w", err)
		}
		err = m.dialect.probe(ctx, &m.database, waits)
	}
	if err != nil {
		return fmt.Errorf("lease: setup: the table fencing_leases can't be used: %w", m.explain(ctx, err))
	}
	return nil
}

// create creates a table, a column or an index. On PostgreSQL, two processes can collide in spite of IF NOT EXISTS; the
// one that fails finds the other's.
func (m *Leases) create(ctx context.Context, text string) error {
	_, err := m.exec(ctx, statement{text: text})
	if dberr.IsCreated(err) {
		return nil
	}
	return err
}

// createProcedures accepts existing procedures if the role can't create them.
func (m *Leases) createProcedures(ctx context.Context) error {
	if !m.options.procedures {
		return nil
	}
	_, err := m.exec(ctx, statement{text: m.dialect.procedures})
	if err == nil {
		return nil
	}
	if found, _ := m.has(ctx, m.dialect.hasProcedures); found {
		return nil
	}
	return fmt.Errorf("lease: setup: create the procedures: %w", m.explain(ctx, err))
}

func (m *Leases) has(ctx context.Context, text string) (found bool, err error) {
	err = m.query(ctx, func(*sql.Rows) error { found = true; return nil }, statement{text: text})
	return found, err
}

func (m *Leases) index(ctx context.Context) error {
	found, err := m.has(ctx, m.dialect.hasIndex)
	if err == nil && !found {
		err = m.create(ctx, m.dialect.createIndex)
	}
	if dberr.SQLState(err) == dberr.InsufficientPrivilege {
		m.log().Warn("lease: fencing_leases has no index on expires_at, so that List reads the whole table, and "+
			"this role can't create the index; call Setup as the table's owner", "err", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("lease: setup: create an index on fencing_leases: %w", err)
	}
	return nil
}

// explain returns err as a [sqlfence.SetupError] if a table of this package, or a privilege on one, is missing.
func (m *Leases) explain(ctx context.Context, err error) error {
	return dialectopt.Explain(ctx, m.db, err, m.needs(),
		setuperr.Ledger(m.dialect, m.options.Schema, "SELECT, INSERT, UPDATE"))
}

func (m *Leases) needs() setuperr.Table {
	return setuperr.Own(m.dialect, m.options.Schema, "fencing_leases", m.dialect.create,
		"SELECT, INSERT, UPDATE, DELETE")
}
