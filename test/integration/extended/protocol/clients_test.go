package protocol_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Statements that a person sends with a database's own command-line client.

// A client is a database's command-line client. It reads SQL and stops at the first error.
type client struct {
	base    harness.Base
	program string
	args    func(t *testing.T, dsn string) (args, env []string)
}

var clients = []client{
	{harness.Bases[1], "psql", func(t *testing.T, dsn string) (args, env []string) {
		return []string{"-XAtq", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", "-d", postgresURL(t, dsn)}, nil
	}},
	{harness.MySQL, "mariadb", func(t *testing.T, dsn string) (args, env []string) {
		c, err := mysql.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		host, port, _ := strings.Cut(c.Addr, ":")
		return []string{"--no-defaults", "--protocol=tcp", "--host=" + host, "--port=" + port, "--user=" + c.User, c.DBName}, []string{"MYSQL_PWD=" + c.Passwd}
	}},
	{harness.Bases[2], "sqlite3", func(t *testing.T, dsn string) (args, env []string) {
		file, _, _ := strings.Cut(strings.TrimPrefix(dsn, "file:"), "?")
		return []string{"-bail", "-batch", strings.ReplaceAll(file, "%23", "#")}, nil
	}},
}

func eachClient(t *testing.T, clients []client, test func(t *testing.T, c client)) {
	for _, c := range clients {
		t.Run(c.program, func(t *testing.T) {
			need.Program(t, c.program)
			test(t, c)
		})
	}
}

// send runs SQL in the client.
func (c client) send(t *testing.T, dsn, text string) (output string, err error) {
	t.Helper()
	args, env := c.args(t, dsn)
	cmd := exec.CommandContext(t.Context(), c.program, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader(strings.TrimSuffix(text, ";\n") + ";\n")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// On a sealed table the page's statements succeed, and statements without a valid token are refused. SQLite has no
// seals.
func TestClientsOnSealed(t *testing.T) {
	eachClient(t, clients[:2], func(t *testing.T, c client) {
		l := sealed(t, c.base)
		texts := block(t, named(c.base)+" sealed")
		prove := texts[strings.LastIndex(texts[:len(texts)-2], ";\n")+2:] // the page's DELETE and its token
		codes := map[string]string{"no token": "FT001", "stale": "FT002", "not issued": "FT003"}
		numbers := map[string]string{"no token": "51001", "stale": "51002", "not issued": "51003"}
		says := map[string]string{
			"no token":   "sqlfence: table books is sealed: the ",
			"stale":      "sqlfence: stale token ",
			"not issued": "sqlfence: token ",
		}
		for _, test := range []struct{ text, want string }{
			{"UPDATE books SET price = 30 WHERE id = 1", "no token"},
			{"UPDATE books SET price = 30, fence_token = 42 WHERE id = 1", "no token"},
			{"UPDATE books SET price = 30, fence_token = NULL WHERE id = 1", "no token"},
			{"INSERT INTO books (id, title, price) VALUES (2, 'two', 20)", "no token"},
			{"INSERT INTO books (id, title, price, fence_token) VALUES (2, 'two', 20, 42)", "no token"},
			{"DELETE FROM books WHERE id = 1", "no token"},
			{"DELETE FROM books", "no token"},
			{"UPDATE books SET price = 30, fence_token = -40 WHERE id = 1", "stale"},
			{"UPDATE books SET price = 30, fence_token = -43 WHERE id = 1", "not issued"},
			{"INSERT INTO books (id, title, price, fence_token) VALUES (2, 'two', 20, -43)", "not issued"},
			{as(prove, 1, 40), "stale"},
			{as(prove, 1, 43), "not issued"},
			{as(prove, 2, 42) + "DELETE FROM books WHERE id = 1", "no token"},
		} {
			out, err := c.send(t, l.dsn, test.text)
			if err == nil || !regexp.MustCompile(says[test.want]).MatchString(out) && !isNullRefusal(test.text, out) {
				t.Errorf("%s: %v\n%s", test.text, err, out)
			}
			if named(c.base) == "postgres" && !strings.Contains(out, codes[test.want]) || named(c.base) == "mysql" && !strings.Contains(out, "ERROR "+numbers[test.want]+" (45000)") && !isNullRefusal(test.text, out) {
				t.Errorf("%s: the code isn't in\n%s", test.text, out)
			}
			l.want(t, "1:10@41")
		}

		if out, err := c.send(t, l.dsn, texts); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		l.want(t, "1:30@42")
		if out, err := c.send(t, l.dsn, texts[:strings.LastIndex(texts, prove)]); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		l.want(t, "1:30@42 2:25@42")
	})
}

// isNullRefusal reports whether the server has refused a NULL in the fence column, which it may check before the seal
// does.
func isNullRefusal(text, out string) bool {
	return strings.Contains(text, "NULL") && regexp.MustCompile("(?i)null").MatchString(out)
}

// as returns the page's DELETE with another row and another token.
func as(text string, id, token int) string {
	text = strings.ReplaceAll(text, "id = 2", fmt.Sprintf("id = %d", id))
	return strings.ReplaceAll(text, "42", fmt.Sprint(token))
}

// On a table without a seal, the page's statements don't change a row that holds a newer token.
func TestClientsOnOpen(t *testing.T) {
	eachClient(t, clients, func(t *testing.T, c client) {
		l := open(t, c.base)
		texts := strings.SplitAfter(block(t, "postgres open"), ";\n")
		texts = texts[:len(texts)-1]
		if named(c.base) == "mysql" {
			texts = append(texts[:2:2], texts[3])
		}
		for i, want := range []string{"1:30@42", "1:30@42 2:20@42"} {
			if out, err := c.send(t, l.dsn, texts[i]); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			l.want(t, want)
		}
		older := strings.ReplaceAll(texts[0]+strings.Join(texts[2:], ""), "42", "41")
		if out, err := c.send(t, l.dsn, older); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		l.want(t, "1:30@42 2:20@42")
		if out, err := c.send(t, l.dsn, strings.Join(texts[2:], "")); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		l.want(t, "1:30@42")
	})
}

// The page's statement takes a token that is higher than every token before.
func TestClientsIssue(t *testing.T) {
	eachClient(t, clients, func(t *testing.T, c client) {
		l := open(t, c.base)
		l.adopt(t)
		text := block(t, named(c.base)+" issue")
		if named(c.base) == "mysql" {
			text = block(t, "mysql ensure") + ";\n" + text + ";\nSELECT LAST_INSERT_ID()"
		}
		out, err := c.send(t, l.dsn, text)
		lines := strings.Fields(out)
		if err != nil || len(lines) == 0 || lines[len(lines)-1] != "43" {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
