package schema

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/fenced"
	"github.com/sqlfence/sqlfence/internal/seal"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// Seal seals the tables that db registers with [sqlfence.Sealed]; db must be fenced. From then on the database refuses
// every write to these tables that doesn't present a valid token, from any client. Programs that register the tables
// with Sealed can write while Seal runs. Seal may run again, and must run again after a partition or a child was added,
// the table or its fence column was renamed, or a rule was changed.
//
// Seal waits for transactions that have written to a table, until ctx ends. It waits a second at a time, and so blocks
// other sessions for at most a second. On PostgreSQL the role must own the tables and have CREATE on their schemas; on
// MySQL the role needs the privileges TRIGGER and LOCK TABLES. With [sqlfence.Ledger] the ledger must exist.
//
// Errors: [sqlfence.ErrInvalid] for a db that isn't fenced, that registers no table with Sealed, or is of SQLite, where
// no table can be sealed, and for [sqlfence.FromTransaction] on another database than PostgreSQL; an untyped error,
// with the reason, for a table that can't be sealed; or the database's error. After an error, tables that were
// registered before the failing table are sealed. The failing table is unchanged, unless the connection to MySQL or
// MariaDB broke: then run Seal again.
func Seal(ctx context.Context, db *sql.DB) error {
	return eachSeal(ctx, db, nil, sealsTables, runs(ctx, db))
}

// Unseal removes the seals of these tables, by their names as registered, or of all tables that are registered with
// [sqlfence.Sealed]. A program that still registers a table with Sealed writes its token into the fence column as a
// negative number, for the seal to check. So Unseal leaves a check that refuses negative values, and such a program's
// writes fail. Programs can write while Unseal runs. Errors are as for [Seal], and [sqlfence.ErrInvalid] for a name
// that isn't registered with Sealed.
func Unseal(ctx context.Context, db *sql.DB, tables ...string) error {
	return eachSeal(ctx, db, tables, 0, runs(ctx, db))
}

// A TablePlan has the statements that [Seal] or [Unseal] sends to change one table.
type TablePlan struct {
	Table      string   // the table's name as registered
	Statements []string // the statements in order, for one connection
}

// SealSQL returns the statements of [Seal] for a migration: for these tables, by their names as registered, or for all
// tables that are registered with [sqlfence.Sealed]. Send the statements of a table one by one, in this order, on one
// connection, on PostgreSQL at READ COMMITTED. SealSQL sends no query, so the database need not exist.
//
// Errors: [sqlfence.ErrInvalid] for a db that isn't fenced, or is of SQLite, and for a name that isn't registered with
// Sealed.
func SealSQL(db *sql.DB, tables ...string) ([]TablePlan, error) {
	return plansOf(context.Background(), db, tables, sealsTables|blind)
}

// UnsealSQL returns the statements of [Unseal] for a migration, as [SealSQL] does for Seal.
func UnsealSQL(db *sql.DB, tables ...string) ([]TablePlan, error) {
	return plansOf(context.Background(), db, tables, blind)
}

// SealPlan returns the statements that [Seal] would run now, for people to read, or for a migration. SealPlan changes
// nothing. Unlike [SealSQL], it reads the catalogue, and refuses the tables that Seal would refuse. Errors are as for
// Seal.
func SealPlan(ctx context.Context, db *sql.DB) ([]TablePlan, error) {
	return plansOf(ctx, db, nil, sealsTables)
}

// UnsealPlan returns the statements that [Unseal] would run now for these tables, or for all tables that are registered
// with [sqlfence.Sealed]. UnsealPlan changes nothing. Errors are as for Unseal.
func UnsealPlan(ctx context.Context, db *sql.DB, tables ...string) ([]TablePlan, error) {
	return plansOf(ctx, db, tables, 0)
}

// How seals are changed.
const (
	sealsTables = 1 << iota // the statements seal the tables; otherwise they remove the seals
	blind                   // no query is sent to the database
)

func plansOf(ctx context.Context, db *sql.DB, names []string, how int) (plans []TablePlan, err error) {
	err = eachSeal(ctx, db, names, how, func(_ *sealer, p TablePlan) error {
		plans = append(plans, p)
		return nil
	})
	return plans, err
}

// eachSeal calls do with the statements for each of the tables, one after the other.
func eachSeal(ctx context.Context, db *sql.DB, names []string, how int, do func(*sealer, TablePlan) error) (err error) {
	defer func() { err = dialectopt.Ended(ctx, err) }()
	tables, err := sealed(db, names)
	if err != nil {
		return err
	}
	for _, t := range tables {
		part, s, err := sealOf(db, t)
		if err != nil {
			return err
		}
		statements := part.unseal
		if how&sealsTables != 0 {
			statements = part.seal
		}
		if part.lookAround != nil && how&blind == 0 {
			err = part.lookAround(ctx, db, &s, how&sealsTables != 0)
		}
		if err == nil {
			err = do(part, TablePlan{t.Name, statements(s)})
		}
		if err != nil {
			return fmt.Errorf("schema: table %q: %w", t.Name, err)
		}
	}
	return nil
}

// A sealer builds the SQL that seals and unseals a table, for one database.
type sealer struct {
	seal, unseal func(sealing) []string

	// lookAround queries the database before the statements are made: for obstacles to a seal, and for the names that
	// the statements need. It is nil if the statements themselves do both.
	lookAround func(ctx context.Context, db *sql.DB, s *sealing, seals bool) error

	level             sql.IsolationLevel // isolation of a transaction for each statement; the default if none is needed
	takesTransactions bool               // triggers can take a transaction's tokens ([sqlfence.FromTransaction])
}

// sealers holds the sealer of each database. In SQLite no table can be sealed.
var sealers = dialectopt.For(&sealPostgres, nil, &sealMySQL)

func sealerOf(d sqlfence.Dialect) (*sealer, error) {
	part, err := sealers.Of(d)
	if err == nil && part == nil {
		err = fmt.Errorf("tables of %v can't be sealed (docs/sealed.md)", d)
	}
	return part, err
}

// A sealing is a table to be sealed.
type sealing struct {
	*core.Table
	fence               // names of the table, and of its fence column or claim column
	tokenTable string   // the table's name in presented tokens and in messages
	found      []string // names of triggers that the table has by a former seal
	taken      []string // names of triggers of other tables, if trigger names are unique in a schema

	own      string // the schema of sqlfence's own tables, set by WithSchema; empty without the option
	ledgerIn string // the schema of the ledger if it isn't the table's; set by lookAround
	negative bool   // some stored tokens are below 0; set by lookAround
	text     sqltext.Dialect
}

// sealed returns the table's properties that the seal's triggers depend on.
func (s sealing) sealed() *seal.Table {
	return &seal.Table{Name: s.tokenTable, Column: s.stored, Claim: s.Rules.Claim != "",
		Resource: s.Resource, Key: s.Rules.Key,
		Serial: s.Rules.Serial, Ledger: s.Rules.Ledger, LedgerIn: s.ledgerIn, SingleUse: s.Rules.SingleUse,
		FromTransaction: s.FromTransaction}
}

// sealed returns the tables of these names that are registered with Sealed, or all.
func sealed(db *sql.DB, names []string) (found []*core.Table, err error) {
	settings, err := fenced.SettingsOf("the seal's tables", db)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if _, err := sealerOf(settings.Dialect()); err != nil {
		return nil, fmt.Errorf("%w: schema: %w", sqlfence.ErrInvalid, err)
	}
	for _, t := range settings.Tables() {
		if t.Rules.Sealed && (len(names) == 0 || slices.Contains(names, t.Name)) {
			found = append(found, t)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(found, func(t *core.Table) bool { return t.Name == name }) {
			return nil, fmt.Errorf("%w: schema: table %q isn't registered with Sealed", sqlfence.ErrInvalid, name)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: schema: no table is registered with Sealed, so nothing would be sealed; add "+
			"sqlfence.Sealed() to its WithTable", sqlfence.ErrInvalid)
	}
	return found, nil
}

// sealOf returns the sealer for a table of db, and the table's sealing.
func sealOf(db *sql.DB, t *core.Table) (*sealer, sealing, error) {
	s := sealing{Table: t, own: fenced.Schema(db.Driver())}
	mark := cmp.Or(t.Rules.FenceColumn, t.Rules.Claim)
	d, _ := core.DialectOf(db.Driver())
	part, err := sealerOf(d)
	if err == nil && t.FromTransaction && !part.takesTransactions {
		err = fmt.Errorf("%v has no setting that ends with its transaction, so FromTransaction is for PostgreSQL", d)
	}
	if err == nil && strings.Contains(t.Name+mark+t.Rules.Key+t.Resource, "$sqlfence") {
		err = errors.New("none of its names may contain $sqlfence")
	}
	if err == nil {
		_, s.tokenTable, err = lang.ParseName(d, t.Name)
	}
	if err == nil {
		names, _ := dialects.Of(d)
		s.text = names.Dialect
		s.fence, err = names.named(t.Name, names.Quote(mark))
	}
	if err != nil {
		return nil, s, fmt.Errorf("%w: schema: table %q can't be sealed: %w", sqlfence.ErrInvalid, t.Name, err)
	}
	return part, s, nil
}

// runs returns a function that runs a table's statements, and repeats all of them while other sessions block the table.
func runs(ctx context.Context, db *sql.DB) func(*sealer, TablePlan) error {
	return func(part *sealer, p TablePlan) error {
		backoff := dberr.Backoff{Next: 100 * time.Millisecond, Max: 2 * time.Second}
		for {
			err := part.run(ctx, db, p.Statements)
			if err == nil || !dberr.IsLockTimeout(err) && !dberr.IsRolledBack(err) && !dberr.IsBusy(err) {
				return err
			}
			if cause := backoff.Wait(ctx); cause != nil {
				return fmt.Errorf("%w (%w)", err, cause)
			}
		}
	}
}

// run runs statements on one connection. If the sealer needs an isolation level, each statement has a separate
// transaction. Otherwise run closes the connection after an error, because the connection may hold locks.
func (p *sealer) run(ctx context.Context, db *sql.DB, statements []string) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, query := range statements {
		if p.level != sql.LevelDefault {
			err = runAt(ctx, conn, p.level, query)
		} else if _, err = conn.ExecContext(trusted.Context(ctx, query), query); err != nil {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// runAt runs a statement in a transaction, at a level that needn't be the session's.
func runAt(ctx context.Context, conn *sql.Conn, level sql.IsolationLevel, query string) error {
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		return err
	}
	if _, err = tx.ExecContext(trusted.Context(ctx, query), query); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
