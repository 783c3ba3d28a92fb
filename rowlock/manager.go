package rowlock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/own"
)

// A Manager knows the live locks of the tables that are [Managed] by it, without
// looking through them: it keeps a row for each in the table rowlocks, written in
// the transaction that writes the lock's columns. It frees what a user or a
// session has left behind. It is safe for use by several goroutines at once, runs
// nothing by itself, and needs no closing.
//
// Several processes may share the table rowlocks. A Manager lists all locks, but
// frees those of its own tables only.
type Manager struct {
	db      *sql.DB
	dialect sqlfence.Dialect

	mu     sync.Mutex
	tables map[string]*Table
}

// create is what doc.go shows; time is a type of the dialect.
const create = `CREATE TABLE IF NOT EXISTS rowlocks (
	table_name text NOT NULL,
	row_key    text NOT NULL,
	user_id    text NOT NULL,
	session    text NOT NULL,
	since      {time} NOT NULL,
	expiry     {time} NOT NULL,
	heartbeat  {time} NOT NULL,
	PRIMARY KEY (table_name, row_key)
)`

// NewManager returns a Manager on db, which may be fenced by sqlfence or not, and
// stays the caller's to close. It sends nothing to the database. The one option
// that it takes is [WithDialect].
func NewManager(db *sql.DB, opts ...Option) (*Manager, error) {
	if db == nil {
		return nil, errors.New("rowlock: nil database")
	}
	c := configure(opts)
	d, err := dialectopt.Resolve(db.Driver(), c.dialect)
	if err != nil {
		c.fail(err)
	}
	if err := errors.Join(c.errs...); err != nil {
		return nil, fmt.Errorf("rowlock: manager: %w", err)
	}
	return &Manager{db: db, dialect: d, tables: make(map[string]*Table)}, nil
}

// add makes t one of the tables of m.
func (m *Manager) add(t *Table) error {
	if m.db != t.db {
		return errors.New("the Manager is of another database")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tables[t.name] != nil {
		return errors.New("the Manager has this table already")
	}
	m.tables[t.name] = t
	return nil
}

// Setup creates the table rowlocks if there is none. It may be called at every
// start, by several processes at once.
func (m *Manager) Setup(ctx context.Context) error {
	err := m.create(ctx)
	if err != nil {
		return fmt.Errorf("rowlock: setup: create rowlocks: %w", err)
	}
	return nil
}

// create doesn't fail where another process does the same at once: in PostgreSQL,
// IF NOT EXISTS doesn't keep the two from a collision.
func (m *Manager) create(ctx context.Context) error {
	text := createText(m.dialect)
	_, err := m.db.ExecContext(own.Context(ctx, text), text)
	if dberr.IsCreated(err) {
		return nil
	}
	return err
}

// createText is create in a dialect.
func createText(d sqlfence.Dialect) string {
	if d == sqlfence.Postgres {
		return strings.ReplaceAll(create, "{time}", "timestamptz")
	}
	return strings.ReplaceAll(create, "{time}", "bigint")
}

// note writes down the lock that the row has now, kept alive by session.
func (t *Table) note(ctx context.Context, q querier, key []any, session string) error {
	if t.manager == nil {
		return nil
	}
	c := t.columns
	text, args := render(t.dialect,
		"INSERT INTO rowlocks (table_name, row_key, user_id, session, since, expiry, heartbeat) ",
		"SELECT CAST(", arg{t.name}, " AS text), ", t.keyText(), ", CAST(", c.by, " AS text), CAST(", arg{session}, " AS text), ",
		c.since, ", ", c.expiry, ", ", now(t.dialect), " FROM ", t.quoted, " ", t.where(key),
		" ON CONFLICT (table_name, row_key) DO UPDATE SET user_id = excluded.user_id, session = excluded.session, ",
		"since = excluded.since, expiry = excluded.expiry, heartbeat = excluded.heartbeat")
	_, err := q.ExecContext(own.Context(ctx, text), text, args...)
	return err
}

// forget strikes out the lock of a row.
func (t *Table) forget(ctx context.Context, q querier, key []any) error {
	if t.manager == nil {
		return nil
	}
	text, args := render(t.dialect,
		"DELETE FROM rowlocks WHERE table_name = ", arg{t.name},
		" AND row_key = (SELECT ", t.keyText(), " FROM ", t.quoted, " ", t.where(key), ")")
	_, err := q.ExecContext(own.Context(ctx, text), text, args...)
	return err
}

// keyText is the row's key as a JSON array, written by the database, so that one
// row has one text whatever Go type the key was given in.
func (t *Table) keyText() string {
	if t.dialect == sqlfence.Postgres {
		return "CAST(json_build_array(" + list(t.keys) + ") AS text)"
	}
	return "json_array(" + list(t.keys) + ")"
}
