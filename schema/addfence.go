package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/catalogue"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
)

// AddFence adds the column of [sqlfence.RowFence] to a table while programs keep writing to the table: a 64-bit
// integer, NOT NULL DEFAULT 0. If the column exists, AddFence changes nothing, locks nothing and returns nil. table and
// column are names as for [sqlfence.WithTable] and RowFence; the table need not be registered.
//
// No row is written, however many rows the table has. Adding a column needs an exclusive table lock for a moment. While
// AddFence waits for this lock, the statements of other sessions queue behind it. So AddFence gives up soon, lets the
// queued statements run, and tries again after a backoff, until ctx ends:
//
//   - PostgreSQL: AddFence waits at most 100 ms for open transactions, with pauses of at most 1.6 s. Before, it waits
//     for VACUUM and for other operations that don't block writers, without blocking writers.
//   - MySQL and MariaDB: AddFence waits at most 1 s, the shortest time that all versions support, with pauses of at
//     most 16 s. It uses ALGORITHM=INSTANT, and fails rather than copy the table if INSTANT isn't possible, for example
//     without InnoDB.
//   - SQLite: AddFence waits for the connection's busy timeout.
//
// Give ctx a deadline, because AddFence waits for ever for a transaction that is left open on the table. In PostgreSQL
// any new column affects programs with a prepared SELECT * or RETURNING *: docs/migrations.md describes the effect, and
// has measurements.
//
// db may be fenced or not. On a fenced database AddFence needs no [sqlfence.Bypass], and observers receive no event.
// AddFence uses one connection, outside of any transaction. The role must own the table; on MySQL it needs the
// privileges ALTER and SELECT.
//
// Errors, with nothing changed: [sqlfence.ErrInvalid] for a nil db, a driver that sqlfence doesn't know (see
// [AddFenceSQL]) and an invalid name; an untyped error for an existing column with another type; or the database's
// error, joined with ctx's error if ctx has ended.
func AddFence(ctx context.Context, db *sql.DB, table, column string) (err error) {
	defer func() { err = dialectopt.Ended(ctx, err) }()
	if db == nil {
		return fmt.Errorf("%w: schema: nil database", sqlfence.ErrInvalid)
	}
	var o dialectopt.Options
	d, _ := dialects.Find(&o, db.Driver())
	if err := o.Err("schema"); err != nil {
		return err
	}
	f, err := d.named(table, column)
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err == nil {
		defer conn.Close()
		err = f.addUntilDone(ctx, conn, d)
	}
	if err != nil {
		return fmt.Errorf("schema: add the fence column %s to table %s: %w", column, table, err)
	}
	return nil
}

// AddFences calls [AddFence] for each table that db registers with [sqlfence.RowFence], in the order of registration.
// db must be fenced. Open db with the options of the program that writes to the tables, so that no table is missing. If
// there is no table to change, AddFences returns nil.
//
// A pattern ("*", "shop.*") stands for the tables that the database has now: "*" for tables that the session finds by a
// name without a schema, "shop.*" for tables of the schema shop. They follow the other tables, in the order of their
// names. AddFences skips tables with [sqlfence.Exempt], sqlfence's tables, views, temporary, foreign and virtual
// tables, and partitions, which inherit the column. It doesn't skip a migration tool's table.
//
// Errors are those of AddFence, of a query of the catalogue, and [sqlfence.ErrInvalid] for a db that isn't fenced.
// After an error, earlier tables keep the new column; call AddFences again for the remaining tables.
func AddFences(ctx context.Context, db *sql.DB) error {
	columns, err := catalogue.FenceColumns(ctx, "schema.AddFences", db)
	if err != nil {
		return err
	}
	for _, c := range columns {
		if err := AddFence(ctx, db, c.Table, c.Column); err != nil {
			return err
		}
	}
	return nil
}

// AddFenceSQL returns the statements of [AddFence] for a migration. Send the statements one by one, in this order, on
// one connection. table and column are names as for [sqlfence.WithTable] and [sqlfence.RowFence].
//
//   - PostgreSQL: one DO statement, which needs the language plpgsql. It retries for about a minute, and may run again.
//     It holds no lock between attempts, but keeps the earlier locks of its transaction. So the DO statement should be
//     the first or only statement of the migration.
//   - MySQL and MariaDB: the second statement sets the session's lock timeout, and the last statement restores it. The
//     third statement fails with error 1205 if another session holds the table, and may be sent again.
//   - SQLite: one ALTER TABLE.
//
// On MySQL, MariaDB and SQLite a second run fails and changes nothing, because the column exists.
//
// Errors: [sqlfence.ErrInvalid] for an unknown dialect or an invalid name.
func AddFenceSQL(d sqlfence.Dialect, table, column string) ([]string, error) {
	part, err := dialects.Of(d)
	if err != nil {
		return nil, fmt.Errorf("%w: schema: %w", sqlfence.ErrInvalid, err)
	}
	f, err := part.named(table, column)
	if err != nil {
		return nil, err
	}
	steps := part.steps(f, triesOfMigration)
	return append(append(steps.before, steps.add), steps.after...), nil
}

// triesOfMigration is how often a statement of a migration tries, as no program sends it again.
const triesOfMigration = 40

// A fence is a fence column to be added, by its names as SQL.
type fence struct {
	table, column string // quoted
	schema, name  string // the table's, as the database stores them; schema may be empty
	stored        string // the column's, as the database stores it
}

// Steps are the statements that add a column. The statements in after are also sent if add has failed.
type steps struct {
	before []string
	add    string
	after  []string
}

// errOther reports an existing column of the name that can't be a fence column.
var errOther = errors.New("there is a column of this name that can't be a fence column")

func (d *dialect) named(table, column string) (fence, error) {
	schema, name, err := lang.SpellName(d.names, table)
	if err == nil {
		_, err = lang.ParseColumn(d.names, column)
	}
	var stored string
	if err == nil {
		_, stored, err = lang.SpellName(d.names, column)
	}
	if err != nil {
		return fence{}, fmt.Errorf("%w: schema: %w", sqlfence.ErrInvalid, err)
	}
	f := fence{table: d.Quote(name), column: d.Quote(stored), schema: schema, name: name, stored: stored}
	if schema != "" {
		f.table = d.Quote(schema) + "." + f.table
	}
	return f, nil
}

// addUntilDone adds the column unless the column exists, and retries while other sessions block the table. After any
// other error it looks for the column again, because another client may have added it.
func (f fence) addUntilDone(ctx context.Context, conn *sql.Conn, d *dialect) error {
	steps, pause := d.steps(f, 1), dberr.Backoff{Next: d.backoff, Max: 8 * d.backoff}
	for {
		there, err := f.there(ctx, conn, d)
		if there || err != nil {
			return err
		}
		failure := dialectopt.Exec(ctx, conn, steps.before, []string{steps.add}, steps.after)
		switch {
		case failure == nil:
			return nil
		case dberr.IsLockTimeout(failure), dberr.IsRolledBack(failure), dberr.IsBusy(failure):
			if pause.Wait(ctx) != nil {
				return fmt.Errorf("%w (%w)", failure, ctx.Err())
			}
		default:
			if there, _ := f.there(ctx, conn, d); there {
				return nil
			}
			if d.explain != nil {
				failure = d.explain(failure)
			}
			return failure
		}
	}
}

// there reports whether the column exists. An existing column that can't be a fence column is an error.
func (f fence) there(ctx context.Context, conn *sql.Conn, d *dialect) (there bool, err error) {
	err = dialectopt.EachRow(ctx, conn, func(rows *sql.Rows) error {
		typ, err := d.scan(rows)
		if err == nil && !d.fits(typ) {
			err = fmt.Errorf("%w: it is %s, want %s; alter it, or register another column", errOther, typ, d.typ)
		}
		there = err == nil
		return err
	}, d.find(f))
	return there, err
}
