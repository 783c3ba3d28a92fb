package session

import (
	"context"
	"fmt"
	"sync/atomic"
)

// A setting such as search_path may make a session find names in another schema, and so another ledger. Without
// WithSchema, the pool's ledger is the one that its sessions find at first. After a statement that may have changed the
// setting, the session is queried before each statement that needs the ledger, because the end of a transaction may
// reset the setting.

// A poolSchema holds the schema in which a pool's sessions find the ledger. The pointer is nil while the schema is
// unknown, and points to an empty string if they find no ledger.
type poolSchema struct{ schema atomic.Pointer[string] }

// A SchemaChanged is the error of a session that finds another ledger than the pool's sessions found at first.
type SchemaChanged struct {
	Found string // the schema of the session's ledger
	Was   string // the schema of the pool's ledger
}

func (m *SchemaChanged) Error() string {
	return fmt.Sprintf("the session finds names in another place than the pool's in the beginning (search_path, "+
		"USE), and so the ledger in %q "+
		"instead of %q, and tokens of the two can't be compared; name the one schema by WithSchema, or give each "+
		"schema a pool of its own; if the schema was renamed, open the pool anew", m.Found, m.Was)
}

// findsLedger reports whether the session's search path finds the ledger.
func (s *Session) findsLedger() bool { return s.wants.Ledger && s.wants.Schema == "" }

// MayChangeLedger reports whether a statement may make the session find another ledger.
func (s *Session) MayChangeLedger(query string) bool {
	return s.findsLedger() && s.mayChangeSchema(query)
}

// mayChangeSchema reports whether a statement may make the session find names in another schema, if this matters for
// guards.
func (s *Session) mayChangeSchema(query string) bool {
	return (s.findsLedger() || s.wants.Read.Any()) && s.dialect.Text.MayChangeSchema(query, Changes(query))
}

// MayHaveChangedLedger reports whether the session may find another ledger than at first.
func (s *Session) MayHaveChangedLedger() bool { return s.schemaChanged && s.findsLedger() }

// noteSchemaChange records that a statement which is about to be sent may make the session find names in another
// schema. If no session of the pool has found the ledger's schema yet, noteSchemaChange queries it before. If this
// query fails, the pool's ledger stays unknown.
func (s *Session) noteSchemaChange(ctx context.Context, c Conn) {
	if s.schemaChanged {
		return
	}
	if s.findsLedger() && s.database.poolSchema.schema.Load() == nil {
		if found, err := s.findLedger(ctx, c); err == nil {
			s.database.poolSchema.schema.CompareAndSwap(nil, &found)
		}
	}
	s.schemaChanged = true
}

// findLedger queries the schema in which the session finds the ledger.
func (s *Session) findLedger(ctx context.Context, c Conn) (string, error) {
	rows, err := c.Query(ctx, s.dialect.Text.Capabilities().FindLedgerSchema)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0][0], nil
}

// CheckSchema returns a [*SchemaChanged] if the session finds another ledger than the pool's, or the query's error.
// Without a ledger it returns nil, because the statement itself fails.
func (s *Session) CheckSchema(ctx context.Context, c Conn) error {
	if !s.MayHaveChangedLedger() {
		return nil
	}
	found, err := s.findLedger(ctx, c)
	if err != nil {
		return queryError(ctx, err)
	}
	if found == "" {
		return nil
	}
	home := &s.database.poolSchema.schema
	if was := home.Load(); was != nil && *was == "" { // the pool had no ledger
		home.CompareAndSwap(was, &found)
	}
	switch was := home.Load(); {
	case was == nil:
		return &SchemaChanged{Found: found, Was: "an unknown one"}
	case *was != found:
		return &SchemaChanged{Found: found, Was: *was}
	}
	return nil
}
