package schema

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
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

// Seal seals the tables that db, which has to be fenced, registers with [sqlfence.Sealed]: from
// then on the database refuses every write to them that doesn't prove its token, from any client.
// Programs that write to them with Sealed go on while it runs. It may be run again, and has to be
// after a partition or a child was added, the table or its fence column was renamed, or a rule was
// changed.
//
// It waits for transactions that have written to a table, a second at a time, so that others aren't
// held up for longer, until ctx ends. The role has to own the tables and, in PostgreSQL, to have
// CREATE on their schemas, or in MySQL the privileges TRIGGER and LOCK TABLES, and with
// [sqlfence.Ledger] the ledger has to be there.
//
// Errors: [sqlfence.ErrInvalid] for a db that isn't fenced, that registers no table with Sealed, or is of SQLite,
// where no table can be sealed, and for [sqlfence.FromTransaction] on another database than PostgreSQL; an untyped one
// for a table that can't be sealed, which says why; else the database's. Tables that were
// registered before the one that the error is about are sealed; that one is as it was, unless the
// connection to MySQL or MariaDB broke meanwhile: then run Seal again.
func Seal(ctx context.Context, db *sql.DB) error {
	tables, err := sealed(db, nil)
	if err != nil {
		return err
	}
	return eachSeal(ctx, db, tables, false)
}

// Unseal takes the seals away from these tables, by their names as registered, or from
// all that are registered with [sqlfence.Sealed]. What stays refuses negative marks: a program
// that takes the table for sealed would store one, and finds out by that. Programs go on
// while it runs. Errors are as for [Seal], and ErrInvalid for a name that isn't registered with Sealed.
func Unseal(ctx context.Context, db *sql.DB, tables ...string) error {
	found, err := sealed(db, tables)
	if err != nil {
		return err
	}
	return eachSeal(ctx, db, found, true)
}

// SealSQL returns the statements of [Seal] for these tables, by their names as registered, or for all that are
// registered with [sqlfence.Sealed], for a migration of your own; send those of a table one by one, in this order,
// on one connection. It asks nothing of the database, so it may be called before there is one.
//
// Errors: [sqlfence.ErrInvalid] for a db that isn't fenced, or is of SQLite, and for a name that isn't registered
// with Sealed.
func SealSQL(db *sql.DB, tables ...string) ([]TablePlan, error) {
	return texts(db, tables, sealer.seal)
}

// UnsealSQL returns the statements of [Unseal] as SealSQL does those of Seal.
func UnsealSQL(db *sql.DB, tables ...string) ([]TablePlan, error) {
	return texts(db, tables, sealer.unseal)
}

// texts returns the statements that are the same whatever the database has.
func texts(db *sql.DB, names []string, of func(sealer, sealing) []string) (plans []TablePlan, err error) {
	tables, err := sealed(db, names)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		part, s, err := sealOf(db, t)
		if err != nil {
			return nil, err
		}
		plans = append(plans, TablePlan{t.Name, of(part, s)})
	}
	return plans, nil
}

// A sealer writes what seals a table of one database.
type sealer interface {
	seal(sealing) []string
	unseal(sealing) []string

	// obstacles is a query for what keeps a seal from holding, a text a row; empty where the
	// statements find that out.
	obstacles(sealing) string
}

// A leveler is a sealer with statements that need a transaction of this level.
type leveler interface{ level() sql.IsolationLevel }

// A takesTransactions is a sealer with triggers that can take a transaction's tokens ([sqlfence.FromTransaction]).
type takesTransactions interface{ takesTransactions() }

// sealers are by database: in SQLite no table can be sealed.
var sealers = dialectopt.For[sealer](sealPostgres{}, nil, sealMySQL{})

// sealerOf returns who seals the tables of a database.
func sealerOf(d sqlfence.Dialect) (sealer, error) {
	part, err := sealers.Of(d)
	if err == nil && part == nil {
		err = fmt.Errorf("tables of %v can't be sealed (docs/sealed.md)", d)
	}
	return part, err
}

// A sealing is a table to be sealed.
type sealing struct {
	*core.Table
	fence          // its names, and the fence column's or the claim's
	proof string   // what the table is called in a proof and in messages
	found []string // names of triggers that the table has by a former seal
	taken []string // and those of other tables, where a trigger's name is the schema's

	own      string // the schema of sqlfence's own tables by WithSchema; empty without
	ledgerIn string // where Seal looks for that itself: the schema of the ledger, if it isn't the table's
	negative bool   // where Seal looks for that itself: some marks are below 0
	text     sqltext.Dialect
}

// sealed returns what the triggers of the seal depend on.
func (s sealing) sealed() *seal.Table {
	return &seal.Table{Name: s.proof, Mark: s.stored, Claim: s.Rules.Claim != "",
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
	byName := make(map[string]*core.Table)
	for _, t := range settings.Tables() {
		if t.Rules.Sealed {
			byName[t.Name] = t
			if len(names) == 0 {
				found = append(found, t)
			}
		}
	}
	for _, name := range names {
		t, ok := byName[name]
		if !ok {
			return nil, fmt.Errorf("%w: schema: table %q isn't registered with Sealed", sqlfence.ErrInvalid, name)
		}
		found = append(found, t)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: schema: no table is registered with Sealed, so nothing would be sealed; add "+
			"sqlfence.Sealed() to its WithTable", sqlfence.ErrInvalid)
	}
	return found, nil
}

// sealOf returns who seals a table of db's, and its names.
func sealOf(db *sql.DB, t *core.Table) (sealer, sealing, error) {
	s := sealing{Table: t, own: fenced.Schema(db.Driver())}
	mark := cmp.Or(t.Rules.FenceColumn, t.Rules.Claim)
	d, _ := core.DialectOf(db.Driver())
	part, err := sealerOf(d)
	if _, ok := part.(takesTransactions); err == nil && t.FromTransaction && !ok {
		err = fmt.Errorf("%v has no setting that ends with its transaction, so FromTransaction is for PostgreSQL", d)
	}
	if err == nil && strings.Contains(t.Name+mark+t.Rules.Key+t.Resource, "$sqlfence") {
		err = errors.New("none of its names may contain $sqlfence")
	}
	if err == nil {
		_, s.proof, err = lang.ParseName(d, t.Name)
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

// sealBackoff is how long a statement waits before it is sent again.
var sealBackoff = dberr.Backoff{Pause: 100 * time.Millisecond, Max: 2 * time.Second}

// eachSeal runs the statements for each table on one connection.
func eachSeal(ctx context.Context, db *sql.DB, tables []*core.Table, unseals bool) (err error) {
	defer func() { err = dialectopt.Ended(ctx, err) }()
	for _, t := range tables {
		part, s, err := prepared(ctx, db, t, unseals)
		if err != nil {
			return err
		}
		if err := runUntilDone(ctx, db, part, s, unseals); err != nil {
			return fmt.Errorf("schema: table %q: %w", t.Name, err)
		}
	}
	return nil
}

// prepared returns who seals a table, and what is known about the table before.
func prepared(ctx context.Context, db *sql.DB, t *core.Table, unseals bool) (sealer, sealing, error) {
	part, s, err := sealOf(db, t)
	if err != nil {
		return nil, s, err
	}
	if !unseals {
		if err := unobstructed(ctx, db, sqltext.Whole(s.text, part.obstacles(s))); err != nil {
			return nil, s, fmt.Errorf("schema: table %q can't be sealed: %w", t.Name, err)
		}
	}
	if err := s.lookAround(ctx, db, part, unseals); err != nil {
		return nil, s, fmt.Errorf("schema: table %q: %w", t.Name, err)
	}
	return part, s, nil
}

// unobstructed returns the first obstacle as an error.
func unobstructed(ctx context.Context, db *sql.DB, query string) error {
	if query == "" {
		return nil
	}
	obstacles, err := dialectopt.Texts(ctx, db, query)
	if err != nil || len(obstacles) == 0 {
		return err
	}
	return errors.New(obstacles[0])
}

// runUntilDone runs a table's statements, all of them again after each time that others were in
// the way.
func runUntilDone(ctx context.Context, db *sql.DB, part sealer, s sealing, unseals bool) error {
	backoff := sealBackoff
	for {
		err := runOnce(ctx, db, part, s, unseals)
		if err == nil || !dberr.IsLockTimeout(err) && !dberr.IsRolledBack(err) && !dberr.IsBusy(err) {
			return err
		}
		if cause := backoff.Wait(ctx); cause != nil {
			return fmt.Errorf("%w (%w)", err, cause)
		}
	}
}

func runOnce(ctx context.Context, db *sql.DB, part sealer, s sealing, unseals bool) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	statements := part.seal(s)
	if unseals {
		statements = part.unseal(s)
	}
	if l, ok := part.(leveler); ok {
		return runAt(ctx, conn, l.level(), statements)
	}
	return runAll(ctx, conn, statements)
}

// runAt runs statements each in a transaction of its own, at a level that needn't be the session's.
func runAt(ctx context.Context, conn *sql.Conn, level sql.IsolationLevel, statements []string) error {
	for _, query := range statements {
		tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: level})
		if err != nil {
			return err
		}
		if _, err = tx.ExecContext(trusted.Context(ctx, query), query); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// runAll runs statements on one connection, which is closed if one fails: it may hold locks.
func runAll(ctx context.Context, conn *sql.Conn, statements []string) error {
	for _, query := range statements {
		if _, err := conn.ExecContext(trusted.Context(ctx, query), query); err != nil {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
			return err
		}
	}
	return nil
}
