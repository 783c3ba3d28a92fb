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

// AddFence adds the column of [sqlfence.RowFence] to a table, while programs go on writing to
// it: a 64-bit integer, NOT NULL DEFAULT 0. If the column is there it changes nothing, locks
// nothing and returns nil. table and column are names as for [sqlfence.WithTable] and
// RowFence; the table need not be registered.
//
// No row is written, however many there are. The column needs the table for itself for a moment,
// and every statement that comes while it waits for that has to wait behind it. So it gives up
// soon, lets the others pass, and tries again after a pause, until ctx ends:
//
//   - PostgreSQL: it waits 100 ms at a time for open transactions, with pauses of at most 1.6 s. A
//     VACUUM, and what else writers needn't wait for, it first waits for without being in
//     their way.
//   - MySQL and MariaDB: 1 s at a time, the shortest time that all versions have, with pauses of at most
//     16 s, with ALGORITHM=INSTANT. It fails where that can't be done, as with a
//     table that isn't of InnoDB, rather than copy the table.
//   - SQLite: as long as the connection's busy timeout.
//
// What it can't do without: a transaction that is left open on the table lets it wait for ever;
// give ctx a deadline. Programs that have SELECT * or RETURNING * prepared notice it in PostgreSQL,
// as they do any new column; docs/migrations.md says how, and what was measured.
//
// db may be fenced or not. Through a fenced one it needs no [sqlfence.Bypass], and is no
// event. It uses one connection, outside of any transaction. The role has to own the table,
// or in MySQL to have the privileges ALTER and SELECT.
//
// Errors, with nothing changed: [sqlfence.ErrInvalid] for a nil db, a driver that sqlfence
// doesn't know (see [AddFenceSQL]) and an invalid name; an untyped one for a column of that name with
// another type; or the database's, joined with ctx's if that has ended.
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

// AddFences adds the column of [sqlfence.RowFence] to each table that db registers with one, as [AddFence] does: to
// one after the other, in the order of registration. db has to be fenced. Open it with the options of the program
// that is to write to the tables, so that none is forgotten. Without such a table it does nothing, and returns nil.
//
// A pattern ("*", "shop.*") stands for the tables that the database has now, after the others and in the order of
// their names: "*" for those that the session finds by a name without a schema, "shop.*" for those of that
// schema. Exempt are those with [sqlfence.Exempt], sqlfence's own, and what gets no column by itself: views,
// temporary, foreign and virtual tables, and partitions, which have that of their table. What is kept by a migration
// tool is a table like any other.
//
// Errors are those of AddFence, of a query of the catalogue, and [sqlfence.ErrInvalid] for a db that isn't fenced. The
// tables before the one that the error is about have their column; call it again for the others.
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

// AddFenceSQL returns the statements of [AddFence], for a migration of your own; send them one
// by one, in this order, on one connection. table and column are names as for
// [sqlfence.WithTable] and [sqlfence.RowFence].
//
//   - PostgreSQL: one DO, which needs the language plpgsql. It tries for about a minute, by
//     itself, and may run again. It holds no lock between the tries; but what its
//     transaction has locked before stays locked, so let it be the first of its
//     migration, or the only one.
//   - MySQL and MariaDB: the second sets how long the session waits for the table, and the last
//     sets it back. The third fails with error 1205 where others hold the table, and may be sent again.
//   - SQLite: one ALTER TABLE.
//
// In the last two a second run fails, since there is a column of that name, and changes nothing.
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

// Steps are the statements that add a column. What is after comes also where add has failed.
type steps struct {
	before []string
	add    string
	after  []string
}

// errOther is a column of the fence's name that is no fence column.
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

// addUntilDone adds the column unless it is there, again after each time that others were in the
// way. Another error may mean that another client has just added the column.
func (f fence) addUntilDone(ctx context.Context, conn *sql.Conn, d *dialect) error {
	steps, pause := d.steps(f, 1), dberr.Backoff{Pause: d.pause, Max: 8 * d.pause}
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

// there reports whether the column is there; one that can't be a fence column is an error.
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
