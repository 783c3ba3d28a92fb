package hold_test

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// A place is a database with a ledger and an unregistered table things, and a holder's pool in it.
type place struct {
	harness.Base
	dsn   string
	db    *sql.DB // the holder's
	plain *sql.DB // another client's, without sqlfence; its writes to SQLite don't wait for the lock
	store *tokens.Store
}

// each runs test for each driver, with and without sqlfence.
func each(t *testing.T, test func(t *testing.T, p *place)) {
	t.Helper()
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for name, open := range map[string]func(t testing.TB, dsn string) *sql.DB{
			"raw":    b.Raw,
			"fenced": func(t testing.TB, dsn string) *sql.DB { return b.Fenced(t, dsn, harness.Books()) },
		} {
			t.Run(name, func(t *testing.T) { test(t, newPlace(t, b, open)) })
		}
	})
}

var waits = regexp.MustCompile(`(busy_timeout[=(])\d+`)

func newPlace(t *testing.T, b harness.Base, open func(t testing.TB, dsn string) *sql.DB) *place {
	t.Helper()
	dsn := b.DSN(t)
	p := &place{Base: b, dsn: dsn, db: open(t, dsn), plain: b.Raw(t, waits.ReplaceAllString(dsn, "${1}0"))}
	p.store = harness.NewStore(t, p.db)
	if err := p.store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.exec(t, "CREATE TABLE things (id integer PRIMARY KEY, n integer NOT NULL, attempt bigint NOT NULL DEFAULT 0)")
	p.exec(t, "INSERT INTO things (id, n, attempt) VALUES (1, 0, 3), (2, 0, 3)")
	return p
}

func (p *place) exec(t *testing.T, query string) {
	t.Helper()
	if _, err := p.plain.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func (p *place) issue(t *testing.T, names ...string) []sqlfence.Token {
	t.Helper()
	issued, err := p.store.IssueMany(t.Context(), names...)
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

// levels are the isolation levels of the database.
func (p *place) levels() []sql.IsolationLevel {
	switch {
	case !p.Networked():
		return []sql.IsolationLevel{sql.LevelDefault}
	case p.DriverName == "mysql":
		return []sql.IsolationLevel{sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}
	}
	return []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}
}

// retryable reports whether an error says that the transaction should be run again.
func retryable(err error) bool {
	var temporary interface{ Temporary() bool }
	if errors.As(err, &temporary) && temporary.Temporary() {
		return true
	}
	text := strings.ToLower(err.Error())
	return harness.SQLState(err) == "40001" || strings.Contains(text, "locked") || strings.Contains(text, "1020")
}

const increment = "UPDATE things SET n = n + 1 WHERE id = 1"

func write(ctx context.Context, tx tokens.Tx) error {
	_, err := tx.ExecContext(ctx, increment)
	return err
}
