package tokens

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// An Issued is the newest token of a name, with who changed it last, and when, for display: any client that may write
// to the ledger can change both.
type Issued struct {
	Token sqlfence.Token

	// By is the session, such as "shop@10.0.0.3, pid 4711, worker-7" (docs/data/ledger.md); empty on SQLite.
	By string

	// At is the time by the database's clock. By and At are zero without a record.
	At time.Time
}

// RecordIssuers makes the database record who changes each token, and when, for [Store.ListIssued]. It adds the columns
// issued_by (not on SQLite) and issued_at to the ledger, with triggers or defaults. Call it after Setup, at every start
// if you like. The role needs the powers of the table's owner, or ALTER and TRIGGER on MySQL and MariaDB. It locks the
// table for a moment and retries until ctx ends, so give ctx a deadline.
//
// Errors: an untyped error if a column of that name has another type; [sqlfence.ErrNotSetUp] without a ledger.
func (s *Store) RecordIssuers(ctx context.Context) error {
	for pause := (dberr.Backoff{Pause: time.Second, Max: 8 * time.Second}); ; {
		err := s.recordIssuers(ctx)
		switch {
		case err == nil:
			return nil
		case !dberr.IsLockTimeout(err) && !dberr.IsRolledBack(err) && !dberr.IsBusy(err), pause.Wait(ctx) != nil:
			err = dialectopt.Explain(ctx, s.db, err, s.needs("")) // no GRANT helps with other privileges
			return fmt.Errorf("tokens: record issuers: %w", err)
		}
	}
}

func (s *Store) recordIssuers(ctx context.Context) error {
	issuers := s.dialect.Facts().Issuers
	if issuers.Whole != "" {
		return s.exec(ctx, issuers.Whole)
	}
	columns, err := s.columns(ctx)
	if err != nil {
		return err
	}
	lacks, err := s.lacksForIssuers(columns)
	if err != nil {
		return err
	}
	found, err := s.triggers(ctx)
	if err != nil {
		return err
	}
	texts := lacking(issuers.Triggers, found)
	if len(lacks) > 0 {
		texts = append([]string{sqltext.AddColumns(lacks)}, texts...)
	}
	if len(texts) == 0 {
		return nil
	}
	err = s.onOne(ctx, texts)
	if err != nil && len(lacks) > 0 {
		// Another process may have added them meanwhile.
		if now, _ := s.columns(ctx); len(now) > len(columns) {
			return s.recordIssuers(ctx)
		}
	}
	return err
}

// lacksForIssuers returns the columns that the ledger lacks for the record. A column of another type is an error.
func (s *Store) lacksForIssuers(columns []column) (lacks []sqltext.IssuerColumn, err error) {
	for _, own := range s.dialect.Facts().Issuers.Columns {
		i := slices.IndexFunc(columns, func(c column) bool { return c.name == own.Name })
		switch {
		case i < 0:
			lacks = append(lacks, own)
		case !strings.HasPrefix(columns[i].typ, own.Type):
			return nil, fmt.Errorf("the table %s has a column %s of its own: it is of type %s, want %s",
				sqltext.LedgerTable, own.Name, columns[i].typ, own.Type)
		}
	}
	return lacks, nil
}
