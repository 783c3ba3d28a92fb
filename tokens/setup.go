package tokens

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// Setup creates the table fencing_tokens, or checks an existing table; the error names what is wrong with the table.
// Processes can call it at every start, concurrently. [github.com/sqlfence/sqlfence/lease.Leases.Setup] includes it.
//
// Setup also installs or updates triggers, through which the database refuses to lower a token and to delete, replace
// or rename a name, and on PostgreSQL the function through which guards read the ledger ([LedgerFunction]). If the role
// isn't allowed to, Setup logs a warning and succeeds. With [WithProcedures], Setup fails if it can't create the
// procedures.
func (s *Store) Setup(ctx context.Context) (err error) {
	defer func() { err = dialectopt.Ended(ctx, err) }()
	columns, err := s.columns(ctx)
	if err != nil {
		return fmt.Errorf("tokens: setup: %w", err)
	}
	if len(columns) == 0 {
		s.options.WarnOfSecond(ctx, s.db, s.needs("SELECT, INSERT, UPDATE"))
		if err := s.create(ctx); err != nil {
			return fmt.Errorf("tokens: setup: create %s: %w", sqltext.LedgerTable, err)
		}
		// Another process may have created another one.
		if columns, err = s.columns(ctx); err != nil {
			return fmt.Errorf("tokens: setup: %w", err)
		}
	}
	if err := s.fit(ctx, columns); err != nil {
		return fmt.Errorf("tokens: setup: the table %s can't be used: %w", sqltext.LedgerTable, err)
	}
	// A query, because its plan has rows: not every driver's Exec ignores them.
	probe := func(text string) error {
		return s.reading(ctx, func(db session) error {
			return dialectopt.EachRow(ctx, db, func(*sql.Rows) error { return nil }, text)
		})
	}
	if err := s.sendBounded(ctx, s.dialect.probe, probe); err != nil {
		return fmt.Errorf("tokens: setup: the table %s can't be used: %w", sqltext.LedgerTable, s.explain(ctx, err))
	}
	if err := s.keepLedger(ctx); err != nil {
		return fmt.Errorf("tokens: setup: %w", err)
	}
	if err := s.createProcedures(ctx); err != nil {
		return err
	}
	narrow := func(c column) bool { return c.name == "token" && c.typ == s.dialect.narrow }
	if slices.ContainsFunc(columns, narrow) {
		return s.checkNarrow(ctx)
	}
	return nil
}

// createProcedures accepts existing procedures if the role can't create them.
func (s *Store) createProcedures(ctx context.Context) error {
	if !s.options.procedures {
		return nil
	}
	err := s.exec(ctx, s.dialect.procedures)
	if err == nil {
		return nil
	}
	if found, _ := s.has(ctx, s.dialect.hasProcedures()); found {
		return nil
	}
	return fmt.Errorf("tokens: setup: create the procedures: %w", s.explain(ctx, err))
}

// has reports whether a query has a row.
func (s *Store) has(ctx context.Context, query string) (found bool, err error) {
	err = dialectopt.EachRow(ctx, s.db, func(*sql.Rows) error { found = true; return nil }, query)
	return found, err
}

// checkNarrow warns of a ledger with a column token of the dialect's type narrow, which can't store the tokens above
// 10^10 after the first failover. It fails if the column can't store the current tokens.
func (s *Store) checkNarrow(ctx context.Context) error {
	floor, err := s.lowerBound(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("tokens: setup: %w", err)
	case floor >= math.MaxInt32:
		return fmt.Errorf("tokens: setup: the table %s can't be used: its column token is of type %s, but on this "+
			"server tokens are above %d; make it a bigint", sqltext.LedgerTable, s.dialect.narrow, floor)
	}
	s.options.Log().Warn("tokens: the column token of " + sqltext.LedgerTable + " is of type " + s.dialect.narrow +
		", which holds no token after a failover or a restore, when tokens are above 10^10; make it a bigint")
	return nil
}

// create creates the table. On PostgreSQL, two processes can collide in spite of IF NOT EXISTS; the one that fails
// finds the other's table.
func (s *Store) create(ctx context.Context) error {
	err := s.exec(ctx, s.dialect.Capabilities().CreateLedger)
	if dberr.IsCreated(err) {
		return nil
	}
	return err
}

// A column describes a column of an existing table.
type column struct {
	name     string
	typ      string // as the database writes it, in lower case
	required bool   // an INSERT must give it a value
}

func (s *Store) columns(ctx context.Context) (columns []column, err error) {
	err = dialectopt.EachRow(ctx, s.db, func(rows *sql.Rows) error {
		var c column
		err := rows.Scan(&c.name, &c.typ, &c.required)
		columns = append(columns, c)
		return err
	}, s.dialect.columns)
	return columns, err
}

// fit checks the properties of the table that the probe doesn't find.
func (s *Store) fit(ctx context.Context, columns []column) error {
	if err := usable(columns); err != nil || s.dialect.unfit == "" {
		return err
	}
	var fault sql.NullString
	err := s.db.QueryRowContext(trusted.Context(ctx, s.dialect.unfit), s.dialect.unfit).Scan(&fault)
	if err == nil && fault.Valid {
		err = errors.New(fault.String)
	}
	return err
}

// usable returns why a ledger with these columns can't be used. It accepts a type of token with int in its name, as
// SQLite does, except PostgreSQL's smallint, which would be full after 32767 tokens.
func usable(columns []column) error {
	var name, token bool
	for _, c := range columns {
		switch {
		case c.name == "token" && (!strings.Contains(c.typ, "int") || c.typ == "smallint"):
			return fmt.Errorf("its column token is of type %s, want bigint", c.typ)
		case c.name == "name":
			name = true
		case c.name == "token":
			token = true
		case c.required:
			return fmt.Errorf("its column %s needs a value in every INSERT; give it a default", c.name)
		}
	}
	switch {
	case len(columns) == 0:
		return errors.New("the server shows no column of it: the role may lack privileges on the table, or a time " +
			"limit of the session may have ended the query")
	case !name || !token:
		return fmt.Errorf("it has the columns %s, want name and token", names(columns))
	}
	return nil
}

func names(columns []column) string {
	var list []string
	for _, c := range columns {
		list = append(list, c.name)
	}
	return strings.Join(list, ", ")
}

// A keeping holds the statements that install the ledger's triggers. The triggers refuse to lower a token or to delete
// a name, for every client.
type keeping struct {
	// whole is a statement that installs or updates all triggers and the guards' function. installed is a query that
	// returns a row if all are installed. Both are empty if triggers are installed one by one.
	whole, installed string

	// hidden is a query that returns a row if row-level security may hide rows of the ledger from a role. Then
	// [Store.Delete] fails, because the row with the lower bound of first tokens may be hidden.
	hidden string

	// find is a query for the names and definitions of the ledger's triggers. before and after are sent on the same
	// connection before and after the statements that create triggers.
	find          string
	before, after []string

	// findRowID is a query for a row id of the ledger. Its error contains noRowID if triggers must do without row ids.
	findRowID, noRowID string
}

// keepLedger installs the ledger's triggers. If it can't, it logs a warning, because another role may have installed
// them. It fails only if the context has ended.
func (s *Store) keepLedger(ctx context.Context) error {
	k := s.dialect.keeping
	var err error
	if k.whole != "" {
		err = s.exec(ctx, k.whole)
	} else {
		err = s.createTriggers(ctx)
	}
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if found, _ := s.has(ctx, k.installed); k.installed == "" || !found {
		// On MySQL a role that may not create triggers can't see triggers.
		s.options.Log().Warn("tokens: this role can't install the triggers that keep tokens from falling; unless "+
			"another one has, every client that may write to "+sqltext.LedgerTable+" can lower one; see docs/tokens.md",
			"error", err)
	}
	return ctx.Err()
}

func (s *Store) createTriggers(ctx context.Context) error {
	triggers := s.ledgerTriggers(ctx)
	found, err := s.triggers(ctx)
	switch {
	case err != nil && strings.Contains(err.Error(), "no such table"):
		return nil // a substitute for SQLite, which has no catalogue and no triggers
	case err != nil:
		return err
	}
	texts := lacking(triggers, found)
	if len(texts) == 0 {
		return nil
	}
	if state := s.dialect.Capabilities().LedgerState; state != "" {
		texts = append([]string{state}, texts...)
	}
	return s.resend(ctx, func() error { return s.onOne(ctx, texts) })
}

// lacking returns the statements that create the triggers that are missing or differ.
func lacking(triggers []sqltext.Trigger, found map[string]string) (texts []string) {
	for _, t := range triggers {
		_, there := found[t.Name]
		differs := t.Differs(found)
		if differs {
			texts = append(texts, "DROP TRIGGER IF EXISTS "+t.Name)
		}
		if !there || differs {
			texts = append(texts, t.Create)
		}
	}
	return texts
}

func (s *Store) ledgerTriggers(ctx context.Context) []sqltext.Trigger {
	triggers, k := s.dialect.Capabilities().LedgerTriggers, s.dialect.keeping
	if k.findRowID != "" {
		if _, err := s.has(ctx, k.findRowID); err != nil && strings.Contains(err.Error(), k.noRowID) {
			return sqltext.WithoutRowID(triggers)
		}
	}
	return triggers
}

func (s *Store) onOne(ctx context.Context, texts []string) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return dialectopt.Exec(ctx, conn, s.dialect.keeping.before, texts, s.dialect.keeping.after)
}

// triggers returns the texts of the ledger's triggers by name.
func (s *Store) triggers(ctx context.Context) (map[string]string, error) {
	return queryEach[string](ctx, s.db, s.dialect.keeping.find)
}
