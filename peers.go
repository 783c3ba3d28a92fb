package sqlfence

import (
	"context"
	"fmt"
)

// peers is what a connection knows about its server: whether others write to the same
// database, each with locks of its own.
type peers uint8

const (
	peersUnasked peers = iota
	peersNone
	peersFound
)

const needsOneServer = "Ledger holds only where one server writes to the database, and this is one of several (Galera, " +
	"or Group Replication with several primaries); compare the token in the row, with RowFence"

// checkPeers refuses a write that compares a token with the ledger where the ledger's lock
// holds off only who writes on the same server: a newer token may be issued on another one at
// the same time, and both commit. A connection asks once, before its first such write, and
// without an answer nothing is written.
func (e *execution) checkPeers(ctx context.Context) error {
	table := e.ledgerTable()
	if table == "" {
		return nil
	}
	s := e.state
	if s.peers == peersUnasked {
		_, found, err := queryText(ctx, s.base, s.settings.profile.text().FindPeers())
		switch {
		case err != nil:
			return fmt.Errorf("sqlfence: asking whether other servers write to the database: %w", err)
		case found:
			s.peers = peersFound
		default:
			s.peers = peersNone
		}
	}
	if s.peers == peersFound {
		return unguardable(table, needsOneServer)
	}
	return nil
}

// ledgerTable returns a table of the statement whose token is compared with the ledger;
// empty if there is none, and where no database has several servers.
func (e *execution) ledgerTable() string {
	if !e.state.settings.ledgers || e.state.settings.profile.text().FindPeers() == "" {
		return ""
	}
	for i := range e.plan.Tables {
		if t := e.table(i); t.rules.Ledger && len(e.held.of(i)) > 0 {
			return t.name
		}
	}
	return ""
}
