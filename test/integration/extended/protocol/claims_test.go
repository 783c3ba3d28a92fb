package protocol_test

import (
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Further statements of docs/protocol.md about single databases.

func TestPostgresClaims(t *testing.T) {
	c := clients[0]
	need.Program(t, c.program)
	l := sealed(t, c.base)
	const copying = "COPY books (id, title, price, fence_token) FROM STDIN;\n"
	if out, err := c.send(t, l.dsn, copying+"2\ttwo\t20\t-42\n3\tthree\t30\t-42\n\\.\n"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, mark := range []string{"42", "-41", "\\N", "0"} {
		if out, err := c.send(t, l.dsn, copying+"4\tfour\t20\t-42\n5\tfive\t20\t"+mark+"\n\\.\n"); err == nil {
			t.Errorf("a copy with %s passes:\n%s", mark, out)
		}
	}
	if out, err := c.send(t, l.dsn, "TRUNCATE books"); err == nil {
		t.Errorf("TRUNCATE passes:\n%s", out)
	}
	if out, err := c.send(t, l.dsn, "UPDATE books SET price = 30, fence_token = -42 WHERE id = 1 RETURNING fence_token"); err != nil || out != "42\n" {
		t.Errorf("%v\n%s", err, out)
	}
	l.want(t, "1:30@42 2:20@42 3:30@42")
}

func TestMySQLClaims(t *testing.T) {
	l := sealed(t, harness.MySQL)
	_, err := l.plain.Exec("UPDATE books SET price = 1 WHERE id = 1")
	var refused *mysql.MySQLError
	if !errors.As(err, &refused) || refused.Number != 51001 || string(refused.SQLState[:]) != "45000" {
		t.Errorf("err = %v", err)
	}
	l.want(t, "1:10@41")
	harness.MustExec(t, l.plain, "TRUNCATE books")
	l.want(t, "")
}
