package mysql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// MariaDB's sql_mode by which no column may be assigned twice is named in the error; an application's
// own mistake stays the server's.
func TestSimultaneousAssignment(t *testing.T) {
	dsn := setup(t)
	strict := harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.Params = map[string]string{"sql_mode": "'SIMULTANEOUS_ASSIGNMENT'"} })
	plain := open(t, dsn)
	if err := open(t, strict).Ping(); err != nil && strings.Contains(err.Error(), "SIMULTANEOUS_ASSIGNMENT") {
		t.Skip(err)
	}
	refill(t, plain)
	for _, c := range []struct {
		query, token string
		rules        []sqlfence.Rule
	}{
		{"UPDATE books SET price = 1 WHERE id = 1", "books", []sqlfence.Rule{sqlfence.RowFence("fence_token")}},
		{"UPDATE books SET price = 1", "books/1", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("id"), sqlfence.Serial("serial")}},
		{"UPDATE books SET id = 1 WHERE id = 1", "books/1", []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("id")}},
		{"INSERT INTO books (id) VALUES (1) ON DUPLICATE KEY UPDATE price = 1", "books", []sqlfence.Rule{sqlfence.RowFence("fence_token")}},
		{"INSERT INTO books (id) VALUES (1) ON DUPLICATE KEY UPDATE price = 1", "books/1", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("id"), sqlfence.Serial("serial")}},
		{"INSERT IGNORE INTO books (id, isbn) VALUES (1, 'i1') ON DUPLICATE KEY UPDATE id = 1, price = 1", "books/1", []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("id")}},
		{"INSERT INTO books SET id = 1 ON DUPLICATE KEY UPDATE serial = 9", "books", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Serial("serial")}},
		{"INSERT INTO books (id) SELECT 1 FROM pens ON DUPLICATE KEY UPDATE price = 1", "books", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()}},
	} {
		db := fence(t, strict, c.rules...)
		_, err := db.ExecContext(of(c.token, 5), c.query)
		var u *sqlfence.UnguardableError
		if !errors.As(err, &u) || !strings.Contains(u.Reason, "SIMULTANEOUS_ASSIGNMENT") || number(err) != 4140 && !strings.HasPrefix(c.query, "INSERT") {
			t.Errorf("%s: %v", c.query, err)
		}
		_, err = db.ExecContext(of(c.token, 5), "DELETE FROM books WHERE id = 9")
		if err != nil {
			t.Errorf("%v", err)
		}
	}
	_, err := fence(t, strict, sqlfence.Ledger()).ExecContext(of("books", 5), "UPDATE books SET price = 1, price = 2")
	if errors.Is(err, sqlfence.ErrUnguardable) || number(err) != 4140 {
		t.Errorf("%v", err)
	}
	if count(t, plain, untouched) != 3 {
		t.Error("rows have changed")
	}
}
