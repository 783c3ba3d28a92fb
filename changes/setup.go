package changes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Setup makes the database count the changes of the tables: it creates the table fencing_changes for the counts, and
// the triggers, if they are missing. If nothing is missing, it changes and locks nothing. Several processes may call it
// at every start, at the same time. tables are names as for [sqlfence.WithTable]; they need not be registered.
//
// Creating triggers needs an exclusive lock on the table for a moment. Setup waits for open transactions for a second
// at most (on SQLite, for the busy timeout), and tries again after a backoff, until ctx ends.
//
// On PostgreSQL the role must own the tables, and needs CREATE on the schema to create fencing_changes. On MySQL the
// role needs the privileges TRIGGER and CREATE, and the triggers run with the role's privileges.
//
// Errors: [sqlfence.ErrInvalid] for an invalid name, and if there is no table; an untyped error for a table that may
// change without a trigger, such as a partitioned table in PostgreSQL or a MySQL table with a cascading foreign key,
// and on a cluster such as Galera; or the database's error. On PostgreSQL, Setup also fails if fencing_changes or the
// trigger function belongs to another role that lacks the powers of the table's owner, because its owner could make all
// writers run other code. After an error, the tables before the failing table are counted.
func (c *Counter) Setup(ctx context.Context, tables ...string) (err error) {
	defer func() { err = dialectopt.Ended(ctx, err) }()
	named, err := c.named(tables)
	if err != nil {
		return err
	}
	if err := c.oneServer(ctx); err != nil {
		return fmt.Errorf("changes: setup: %w", err)
	}
	for _, t := range named {
		if err := c.setup(ctx, t); err != nil {
			return fmt.Errorf("changes: setup of table %s: %w", t.written, err)
		}
	}
	return nil
}

// oneServer returns an error in a cluster in which several servers accept writes, such as Galera: connections of two
// servers would count in the same row, and one of the two transactions would fail at COMMIT.
func (c *Counter) oneServer(ctx context.Context) error {
	if c.dialect.group == "" {
		return nil
	}
	return dialectopt.EachRow(ctx, c.db, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		if err != nil {
			return err
		}
		if why := c.dialect.servers(name, value); why != "" {
			err = fmt.Errorf("changes can't be counted where %s (%s is %q)", why, name, value)
		}
		return err
	}, c.dialect.group)
}

func (c *Counter) setup(ctx context.Context, t table) error {
	if obstacles := c.dialect.text(c, t, c.dialect.obstacles); obstacles != "" {
		found, err := dialectopt.Texts(ctx, c.db, sqltext.Whole(c.dialect, obstacles))
		if err == nil && len(found) > 0 {
			err = errors.New("it can't be counted: " + strings.Join(found, "; "))
		}
		if err != nil {
			return err
		}
	}
	if ok, _, err := c.query(ctx, []table{t}); err == nil && ok[0] {
		return nil
	}
	pause := dberr.Backoff{Next: 200 * time.Millisecond, Max: 2 * time.Second}
	for {
		err := c.install(ctx, t)
		if err == nil {
			err = c.installed(ctx, t)
		}
		if err == nil || !isPassing(err) {
			return err
		}
		if pause.Wait(ctx) != nil {
			return fmt.Errorf("%w (%w)", err, ctx.Err())
		}
	}
}

// installed looks for the triggers, and retries because MariaDB may hide triggers while another process reinstalls
// them.
func (c *Counter) installed(ctx context.Context, t table) error {
	pause := dberr.Backoff{Next: time.Millisecond, Max: time.Second}
	for tries := 1; ; tries++ {
		ok, _, err := c.query(ctx, []table{t})
		if err != nil || ok[0] {
			return err
		}
		if tries == 10 || pause.Wait(ctx) != nil {
			return errNoTriggers
		}
	}
}

func isPassing(err error) bool {
	return dberr.IsLockTimeout(err) || dberr.IsRolledBack(err) || dberr.IsBusy(err) || dberr.IsCreated(err)
}

// install sends the statements that install a table's counter on one connection.
func (c *Counter) install(ctx context.Context, t table) error {
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	texts := func(all []string) (texts []string) {
		for _, text := range all {
			texts = append(texts, c.dialect.text(c, t, text))
		}
		return texts
	}
	return dialectopt.Exec(ctx, conn, texts(c.dialect.before), texts(c.dialect.install), texts(c.dialect.after))
}
