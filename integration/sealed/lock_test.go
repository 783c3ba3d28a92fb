package sealed_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/schema"
)

// An edit lock is taken and released without a token, and nothing else is written with it.
func TestEditLock(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		l := newUnsealed(t, b)
		for _, column := range []string{"serial bigint NOT NULL DEFAULT 1", "note varchar(20)", "share real", "editedby integer", "editedsince " + times[b.Dialect], "editedexpiry " + times[b.Dialect]} {
			l.exec(t, "ALTER TABLE books ADD COLUMN "+column)
		}
		if b.Dialect == sqlfence.MySQL {
			l.exec(t, "ALTER TABLE books ADD COLUMN touched datetime(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), ADD COLUMN twice integer AS (price * 2)")
		}
		l.exec(t, "UPDATE books SET note = 'a', share = 1")
		l.rules = append(l.rules, sqlfence.EditLock("editedby", "editedsince", "editedexpiry"))
		l.db = l.open(t)
		if tables, err := sqlfence.Tables(l.db); err != nil {
			t.Fatal(err)
		} else if _, err := schema.SealSQL(b.Dialect, tables[0]); (err == nil) != (b.Dialect == sqlfence.Postgres) || err != nil && !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("SealSQL: %v", err)
		}
		l.seal(t)
		locks, err := rowlock.New(l.db, "books")
		if err != nil {
			t.Fatal(err)
		}
		five := rowlock.Edit{ID: 1, User: 5, Serial: 1}
		if _, err := locks.Request(t.Context(), five); err != nil {
			t.Fatal(err)
		}

		for _, query := range []string{
			"UPDATE books SET editedby = NULL, price = 99",
			"UPDATE books SET editedby = 6, fence_token = 8",
			"UPDATE books SET editedby = NULL, id = id + 10",
			"UPDATE books SET editedby = NULL, note = 'A'",
			"UPDATE books SET editedby = NULL, note = 'a '",
			"UPDATE books SET editedby = NULL, note = NULL",
			"UPDATE books SET note = 'b'",
			"UPDATE books SET share = 1.00000011920929",
			"UPDATE books SET author = 0",
		} {
			if _, err := l.plain.Exec(query + " WHERE id = 1"); err == nil {
				t.Errorf("%s: it has landed", query)
			}
			if _, err := l.db.ExecContext(sqlfence.Bypass(t.Context(), "to meet the seal"), query+" WHERE id = 1"); !errors.Is(err, sqlfence.ErrNoFence) {
				t.Errorf("%s: %v", query, err)
			}
		}
		l.want(t, "1:10@7 2:10@7 3:10@0")

		for _, query := range []string{"UPDATE books SET price = 20 WHERE id = 1", "DELETE FROM books WHERE id = 1"} {
			if _, err := l.db.ExecContext(holding(t, 7), query); !errors.Is(err, sqlfence.ErrLocked) {
				t.Errorf("%s: %v", query, err)
			}
			if _, err := l.db.ExecContext(sqlfence.WithEditor(holding(t, 6), 5), query); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("stale %s: %v", query, err)
			}
		}
		save := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(sqlfence.WithEditor(holding(t, 7), 5), "UPDATE books SET price = 20, serial = serial + 1 WHERE id = 1")
			return err
		}
		if err := locks.SaveRelease(t.Context(), five, save); err != nil {
			t.Error(err)
		}
		l.want(t, "1:20@7 2:10@7 3:10@0")
		l.lockAfterChange(t, locks)
	})
}

// lockAfterChange alters the table: until it is sealed again, no lock is taken where the seal
// can't see what it writes.
func (l *lab) lockAfterChange(t *testing.T, locks *rowlock.Table) {
	t.Helper()
	l.exec(t, "ALTER TABLE books ADD COLUMN added integer")
	six := rowlock.Edit{ID: 2, User: 6, Serial: 1}
	unseen := func() {
		t.Helper()
		if _, err := l.db.ExecContext(sqlfence.Bypass(t.Context(), "to meet the seal"), "UPDATE books SET added = 1, editedby = 6"); !errors.Is(err, sqlfence.ErrNoFence) {
			t.Error(err)
		}
	}
	unseen()
	if _, err := locks.Request(t.Context(), six); l.Dialect != sqlfence.Postgres && (err == nil || !strings.Contains(err.Error(), "is sealed")) {
		t.Error(err)
	}
	l.seal(t)
	if _, err := locks.Request(t.Context(), six); err != nil {
		t.Error(err)
	}
	unseen()
	if err := locks.Release(t.Context(), 2, 6); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"1", "2"} {
		if _, err := l.db.ExecContext(holding(t, 7), "DELETE FROM books WHERE id = "+id); err != nil {
			t.Error(err)
		}
	}
	l.want(t, "3:10@0")
}

var times = map[sqlfence.Dialect]string{sqlfence.Postgres: "timestamptz", sqlfence.MySQL: "bigint", sqlfence.SQLite: "integer"}
