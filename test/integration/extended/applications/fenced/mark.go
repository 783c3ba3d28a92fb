package fenced

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// A mark is where the tokens of an application's tables are kept, reached past sqlfence.
type mark struct {
	plain *sql.DB
	names []string
	row   bool // in the rows, not in the ledger
	lock  bool // several may write at once
}

func newMark(at place, mode string, names []string) (*mark, error) {
	if mode != "row" && mode != "ledger" {
		return nil, fmt.Errorf("fenced: unknown mode %q", mode)
	}
	plain, err := sql.Open(at.driverName, at.dsn)
	if err != nil {
		return nil, err
	}
	m := &mark{plain: plain, names: names, row: mode == "row"}
	if m.lock = m.answers("SELECT pg_backend_pid()"); !m.lock {
		plain.Close()
		m.plain = sql.OpenDB(hasty{connector{plain.Driver(), at.dsn}})
	}
	m.plain.SetMaxIdleConns(0) // nothing of ours stays open beside the application
	return m, nil
}

// missing reports whether the application has still to make a table.
func (m *mark) missing() bool {
	return slices.ContainsFunc(m.names, func(name string) bool { return !m.answers("SELECT 1 FROM " + name + " WHERE 1 = 0") })
}

func (m *mark) answers(query string) bool {
	rows, err := m.plain.Query(query)
	if err != nil {
		return false
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err() == nil
}

// prepare makes the columns or the ledger.
func (m *mark) prepare() error {
	store, err := tokens.New(m.plain)
	if err == nil {
		err = store.Setup(context.Background())
	}
	if err == nil {
		err = store.Ensure(context.Background(), resource)
	}
	if err != nil || !m.row {
		return err
	}
	for _, name := range m.names {
		if m.answers("SELECT " + column + " FROM " + name + " WHERE 1 = 0") {
			continue
		}
		if _, err := m.plain.Exec("ALTER TABLE " + name + " ADD COLUMN " + column + " bigint NOT NULL DEFAULT 0"); err != nil {
			return err
		}
	}
	return nil
}

// issue issues the next token.
func (m *mark) issue(patience time.Duration) (sqlfence.Token, error) {
	store, err := tokens.New(m.plain)
	if err != nil {
		return sqlfence.Token{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return store.Issue(ctx, resource)
}

// take writes each row under another process's token. take fails without effect while a transaction of the application
// with writes is open, because the caller may be inside this transaction.
func (m *mark) take(newer sqlfence.Token, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tx, err := m.plain.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, name := range m.names {
		if m.lock { // rows that aren't committed yet can't be marked
			if _, err := tx.ExecContext(ctx, "LOCK TABLE "+name+" IN EXCLUSIVE MODE"); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET %s = %d", name, column, newer.Value)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// content returns what the tables hold: all of it under the ledger, and what the holder of
// the newer token has written where rows are fenced.
func (m *mark) content(newer sqlfence.Token) (map[string]string, error) {
	got := map[string]string{}
	for _, name := range m.names {
		query := "SELECT * FROM " + name
		if m.row {
			query += fmt.Sprintf(" WHERE %s >= %d", column, newer.Value)
		}
		text, err := m.dump(query)
		if err != nil {
			return nil, err
		}
		got[name] = text
	}
	return got, nil
}

func (m *mark) dump(query string) (string, error) {
	rows, err := m.plain.Query(query)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	var lines []string
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return "", err
		}
		lines = append(lines, fmt.Sprintf("%q", values))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), errors.Join(rows.Err(), rows.Close())
}
