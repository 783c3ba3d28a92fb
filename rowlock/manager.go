package rowlock

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Manager lists the locks of the tables that are made [WithManager], and frees locks that a user or a session has
// left behind. The table rowlocks has a row for each lock, written in the lock's transaction. Several processes may
// share rowlocks: a Manager lists the locks of all processes, but frees only locks of its own tables. A Manager is safe
// for concurrent use.
//
// FreeUser, FreeSession, FreeSilent and FreeAll use a transaction for each lock, and skip a lock that was taken again,
// or renewed in another session, after it was listed. After an error they continue with the next lock, and return all
// errors joined.
type Manager struct {
	db      *sql.DB
	options dialectopt.Options
	dialect *dialect

	mu     sync.Mutex
	tables map[string]*Table
}

// NewManager returns a Manager on db, which the caller closes. NewManager sends nothing to the database. [WithDialect]
// is the only option. Errors are [sqlfence.ErrInvalid].
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

// Setup creates the table rowlocks if it doesn't exist. Several processes can call Setup at every start, at the same
// time. On MySQL and MariaDB, Setup also checks whether an existing table can be used.
func (m *Manager) Setup(ctx context.Context) (err error) {
	defer func() { err = dialectopt.Ended(ctx, err) }()
	text, args := sqltext.Render(m.dialect, m.dialect.listColumns, sqltext.Fragments{
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

// fit checks the table rowlocks, which any program may have created.
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

// A HeldLock is a lock that a [Manager] lists.
type HeldLock struct {
	Table     string    // folded as the database folds names
	Row       string    // the row's key as a JSON array, such as [7] or ["a", 1]
	User      string    // the holder's ID as text
	Session   string    // from [Edit]
	Since     time.Time // as in [Lock]
	Expiry    time.Time // when the lock lapses
	Heartbeat time.Time // the session's last sign of life
}

// A Filter selects the locks that match all fields that are set. The zero value selects all locks.
type Filter struct {
	Table string // as in [HeldLock]
	Row   string // as in [HeldLock]; blanks don't matter
	User  any    // as in [Edit]; nil for all users
}

// Locks returns the live locks that f selects, in the order of table and key. It finds the locks of all Tables that
// have a Manager. An invalid Row or User of f is [sqlfence.ErrInvalid].
func (m *Manager) Locks(ctx context.Context, f Filter) ([]HeldLock, error) {
	where, pieces := "expiry > {now}", sqltext.Fragments{}
	if f.Table != "" {
		where += " AND table_name = {stored {wanted_table}}"
		pieces["wanted_table"] = sqltext.Value(f.Table)
	}
	if f.Row != "" {
		key, err := parseKey(f.Row)
		if err != nil {
			return nil, err
		}
		text, err := keyText(key, m.dialect.keyComma)
		if err != nil {
			return nil, err
		}
		where += " AND row_key = {stored {wanted_row}}"
		pieces["wanted_row"] = sqltext.Value(text)
	}
	if f.User != nil {
		user, err := userText(f.User)
		if err != nil {
			return nil, err
		}
		where += " AND user_id = {stored {wanted_user}}"
		pieces["wanted_user"] = sqltext.Value(user)
	}
	return m.list(ctx, condition{where, pieces})
}

type condition struct {
	text      string
	fragments sqltext.Fragments
}

// list reads the locks, live or lapsed, for which c holds.
func (m *Manager) list(ctx context.Context, c condition) (all []HeldLock, err error) {
	text, args := sqltext.Render(m.dialect,
		`SELECT {shown table_name}, {shown row_key}, {shown user_id}, {shown session}, {micros since}, {micros expiry}, {micros heartbeat}
	FROM rowlocks WHERE `+c.text+` ORDER BY table_name, row_key`, c.fragments,
		sqltext.Fragments{"stored": sqltext.Func(m.dialect.stored), "shown": sqltext.Func(m.dialect.shown)})
	read := func(ctx context.Context, q owned) error {
		all = nil
		return q.each(ctx, func(rows *sql.Rows) error {
			var h HeldLock
			var since, expiry, heartbeat sql.NullInt64
			err := rows.Scan(&h.Table, &h.Row, &h.User, &h.Session, &since, &expiry, &heartbeat)
			h.Since, h.Expiry, h.Heartbeat = fromMicros(since), fromMicros(expiry), fromMicros(heartbeat)
			all = append(all, h)
			return err
		}, text, args...)
	}
	if m.dialect.multiStatement {
		err = transact(ctx, m.db, m.dialect, read)
	} else {
		err = dberr.Resend(ctx, dberr.IsSerialization, func() error { return read(ctx, owned{m.db}) })
	}
	if err != nil {
		return nil, fmt.Errorf("rowlock: list: %w", m.explain(ctx, err))
	}
	return all, nil
}

func userText(user any) (string, error) {
	value, err := userID(user)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(value), nil
}

// parseKey reads the JSON array of a key.
func parseKey(text string) (CompositeKey, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var key CompositeKey
	if err := d.Decode(&key); err != nil || len(key) == 0 {
		return nil, invalid("the row %q is not a JSON array of a key's values", text)
	}
	for i, v := range key {
		if n, ok := v.(json.Number); ok {
			integer, err := n.Int64()
			if err != nil {
				return nil, invalid("the row %q has a key that is neither an integer nor a text", text)
			}
			key[i] = integer
		}
	}
	return key, nil
}

// keyText spells a key as the database does.
func keyText(key CompositeKey, comma string) (string, error) {
	parts := make([]string, len(key))
	for i, v := range key {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false) // nor do the databases
		if err := e.Encode(v); err != nil {
			return "", err
		}
		parts[i] = strings.TrimSuffix(b.String(), "\n")
	}
	return "[" + strings.Join(parts, comma) + "]", nil
}
