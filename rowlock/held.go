package rowlock

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/own"
)

// A Held is a lock as the [Manager] knows it.
type Held struct {
	Table     string    // as the database knows it, after folding
	Row       string    // the key as a JSON array, such as [7] or ["a", 1]
	User      string    // the holder's id as text
	Session   string    // empty if none keeps it alive
	Since     time.Time // when the holder started to edit
	Expiry    time.Time // when the lock lapses
	Heartbeat time.Time // when the session last gave a sign of life
}

// A Filter narrows down a list of locks. The zero value lets all through.
type Filter struct {
	Table string // as in [Held]
	Row   string // as in [Held]; the spaces in it don't matter
	User  any
}

// Locks lists the live locks, by table and key; those whose time ran out are not
// among them. It answers for the locks that were taken through a [Managed] Table.
func (m *Manager) Locks(ctx context.Context, f Filter) ([]Held, error) {
	where := frag{"expiry > ", now(m.dialect)}
	if f.Table != "" {
		where = append(where, " AND table_name = ", arg{f.Table})
	}
	if f.Row != "" {
		row, err := m.rowKey(f.Row)
		if err != nil {
			return nil, err
		}
		where = append(where, " AND row_key = ", arg{row})
	}
	if f.User != nil {
		user, err := userText(f.User)
		if err != nil {
			return nil, err
		}
		where = append(where, " AND user_id = ", arg{user})
	}
	return m.list(ctx, where)
}

// list reads the locks, live or not, for which where holds.
func (m *Manager) list(ctx context.Context, where frag) (all []Held, err error) {
	text, args := render(m.dialect, "SELECT table_name, row_key, user_id, session, ",
		stamp(m.dialect, "since"), ", ", stamp(m.dialect, "expiry"), ", ", stamp(m.dialect, "heartbeat"),
		" FROM rowlocks WHERE ", where, " ORDER BY table_name, row_key")
	err = resend(func() error {
		all, err = m.scan(m.db.QueryContext(own.Context(ctx, text), text, args...))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("rowlock: list: %w", err)
	}
	return all, nil
}

func (m *Manager) scan(rows *sql.Rows, err error) ([]Held, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Held
	for rows.Next() {
		var h Held
		var since, expiry, heartbeat sql.NullInt64
		if err := rows.Scan(&h.Table, &h.Row, &h.User, &h.Session, &since, &expiry, &heartbeat); err != nil {
			return nil, err
		}
		h.Since, h.Expiry, h.Heartbeat = moment(m.dialect, since), moment(m.dialect, expiry), moment(m.dialect, heartbeat)
		all = append(all, h)
	}
	return all, rows.Err()
}

// rowKey spells a key as the database does, with a space after a comma or none.
func (m *Manager) rowKey(row string) (string, error) {
	values, err := keyValues(row)
	if err != nil {
		return "", err
	}
	parts := make([]string, len(values))
	for i, v := range values {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false) // nor do the databases
		if err := e.Encode(v); err != nil {
			return "", err
		}
		parts[i] = strings.TrimSuffix(b.String(), "\n")
	}
	comma := ","
	if m.dialect == sqlfence.Postgres {
		comma = ", "
	}
	return "[" + strings.Join(parts, comma) + "]", nil
}

// keyValues reads a key back.
func keyValues(row string) (Composite, error) {
	d := json.NewDecoder(strings.NewReader(row))
	d.UseNumber()
	var values Composite
	if err := d.Decode(&values); err != nil || len(values) == 0 {
		return nil, fmt.Errorf("rowlock: the row %q is no JSON array of a key's values", row)
	}
	for i, v := range values {
		if n, ok := v.(json.Number); ok {
			integer, err := n.Int64()
			if err != nil {
				return nil, fmt.Errorf("rowlock: the row %q has a key that is neither integer nor text", row)
			}
			values[i] = integer
		}
	}
	return values, nil
}

// userText is a user's id as text, as rowlocks has it.
func userText(user any) (string, error) {
	value, err := userID(user)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(value), nil
}

// Heartbeat says that a session is alive. Call it more often than what you give
// to [Manager.FreeSilent]; it renews no lock. An empty session is refused.
func (m *Manager) Heartbeat(ctx context.Context, session string) error {
	if session == "" {
		return errors.New("rowlock: heartbeat of no session")
	}
	text, args := render(m.dialect, "UPDATE rowlocks SET heartbeat = ", now(m.dialect), " WHERE session = ", arg{session})
	// In a transaction, so that a deadlock with one that takes several locks is
	// tried again.
	err := transact(ctx, m.db, m.dialect, func(ctx context.Context, q querier) error {
		_, err := q.ExecContext(own.Context(ctx, text), text, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("rowlock: heartbeat: %w", err)
	}
	return nil
}
