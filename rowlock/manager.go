package rowlock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Manager lists the locks of the tables that have it ([WithManager]), and frees locks that a user or a session has
// left. The table rowlocks has a row for each lock, written in the lock's transaction. Processes may share it: a
// Manager lists all locks, but frees only those of its own tables. It is safe for concurrent use.
type Manager struct {
	db      *sql.DB
	options dialectopt.Options
	dialect *dialect

	mu     sync.Mutex
	tables map[string]*Table
}

// NewManager returns a Manager on db. It sends nothing, and the caller closes db. [WithDialect] is the only option.
// Errors are [sqlfence.ErrInvalid].
func NewManager(db *sql.DB, opts ...Option) (*Manager, error) {
	if db == nil {
		return nil, invalid("nil database")
	}
	c := configure(opts)
	for _, name := range c.tableOnly {
		c.Fail(fmt.Errorf("%s is an option of a Table, not of a Manager", name))
	}
	dialect, _ := dialects.Find(&c.Options, db.Driver())
	if err := c.invalid("manager"); err != nil {
		return nil, err
	}
	return &Manager{db: db, options: c.Options, dialect: dialect(), tables: make(map[string]*Table)}, nil
}

func (m *Manager) add(t *Table) error {
	if m.db != t.db {
		return errors.New("the Manager uses another database (another *sql.DB)")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tables[t.name] != nil {
		return errors.New("the Manager has this table already")
	}
	m.tables[t.name] = t
	return nil
}

// Setup creates the table rowlocks if it doesn't exist. Processes can call it at every start, concurrently. On MySQL
// and MariaDB, it checks an existing table.
func (m *Manager) Setup(ctx context.Context) (err error) {
	defer func() { err = dialectopt.Ended(ctx, err) }()
	text, args := sqltext.Render(m.dialect, m.dialect.listColumns, sqltext.Pieces{
		"regclass": sqltext.Raw("'rowlocks'"), "tableargs": sqltext.SQL("'rowlocks'"),
		"schema": sqltext.SQL("NULL"), "bare": sqltext.Raw(m.dialect.Text("rowlocks")),
	})
	db := owned{m.db}
	found, err := readColumns(ctx, db, m.dialect, text, args)
	if err != nil {
		return fmt.Errorf("rowlock: setup: look for rowlocks: %w", err)
	}
	if len(found) > 0 {
		return m.fit(ctx, db)
	}
	_, err = db.exec(ctx, m.dialect.create)
	if err != nil && !dberr.IsCreated(err) {
		return fmt.Errorf("rowlock: setup: create rowlocks: %w", err)
	}
	return nil
}

// fit checks a table that another program may have created.
func (m *Manager) fit(ctx context.Context, db owned) error {
	text := m.dialect.unfit
	if text == "" {
		return nil
	}
	var fault sql.NullString
	if err := db.row(ctx, text, nil, &fault); err != nil {
		return fmt.Errorf("rowlock: setup: look at rowlocks: %w", err)
	}
	if fault.Valid {
		return fmt.Errorf("rowlock: setup: the table rowlocks can't be used: %s", fault.String)
	}
	return nil
}
