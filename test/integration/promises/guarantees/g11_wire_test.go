package guarantees_test

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A disguise forwards a server's responses, and replaces the server's name in the greeting, in the error that proves
// the raise, and in the variables.
type disguise func(client io.Writer, server *bufio.Reader, real, says string) error

var disguises = map[sqlfence.Dialect]disguise{sqlfence.Postgres: disguisePostgres, sqlfence.MySQL: disguiseMySQL}

var proofsVersion = regexp.MustCompile(`"version" : "[^"]*", "extension" : null`)

func disguisePostgres(client io.Writer, server *bufio.Reader, _, says string) error {
	var head [5]byte // a letter, and the length including itself
	if _, err := io.ReadFull(server, head[:]); err != nil {
		return err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
	if _, err := io.ReadFull(server, body); err != nil {
		return err
	}
	version, extension, _ := strings.Cut(says, "|")
	switch {
	case head[0] == 'E':
		body = proofsVersion.ReplaceAllLiteral(body, []byte(`"version" : "`+version+`", "extension" : "`+extension+`"`))
	case head[0] == 'S' && bytes.HasPrefix(body, []byte("server_version\x00")):
		body = []byte("server_version\x0013.0.0\x00")
	}
	binary.BigEndian.PutUint32(head[1:], uint32(len(body)+4))
	_, err := client.Write(append(head[:], body...))
	return err
}

func disguiseMySQL(client io.Writer, server *bufio.Reader, real, says string) error {
	var head [4]byte // the length in three bytes, and a sequence number
	if _, err := io.ReadFull(server, head[:]); err != nil {
		return err
	}
	body := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	if _, err := io.ReadFull(server, body); err != nil {
		return err
	}
	const greeting, failure, shown, unneeded = 10, 0xff, "\x0fversion_comment", "\x08sql_mode"
	version, comment, _ := strings.Cut(says, "|")
	comment, variable, _ := strings.Cut(comment, "|")
	switch {
	case len(body) == 0:
	case body[0] == greeting && head[3] == 0:
		end := bytes.IndexByte(body, 0)
		body = append(append([]byte{greeting}, version...), body[end:]...)
	case body[0] == failure:
		body = bytes.ReplaceAll(body, []byte(real), []byte(version))
	case bytes.HasPrefix(body, []byte(shown)):
		body = append([]byte(shown), append([]byte{byte(len(comment))}, comment...)...)
	case bytes.HasPrefix(body, []byte(unneeded)) && variable != "":
		body = append(append([]byte{byte(len(variable))}, variable...), body[len(unneeded):]...)
	}
	head[0], head[1], head[2] = byte(len(body)), byte(len(body)>>8), byte(len(body)>>16)
	_, err := client.Write(append(head[:], body...))
	return err
}

// A server that reports another product on the wire is refused by name, with each driver, until the application takes
// the risk. No part of a refused statement reaches the server.
func TestG11ServersOnTheWire(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		pass := disguises[b.Dialect]
		if pass == nil {
			t.Skip("it is in the process")
		}
		sh := harness.NewShop(t, b)
		sh.Reset(t, 7)
		var real string
		if err := sh.Plain.QueryRow("SELECT version()").Scan(&real); err != nil {
			t.Fatal(err)
		}
		rules := []sqlfence.Rule{sqlfence.RowFence("fence_token")}
		write := func(db *sql.DB, price int) error {
			_, err := db.ExecContext(harness.Holding(t, 8), "UPDATE books SET price = $1 WHERE id = 1", price)
			return err
		}
		eachServer(b.Dialect, func(says, name string) {
			dsn := harness.Relay(t, sh.Source, func(client, server net.Conn) {
				go func() {
					defer server.Close()
					_, _ = io.Copy(server, client)
				}()
				defer client.Close()
				for answers := bufio.NewReader(server); pass(client, answers, real, says) == nil; {
				}
			})
			db := b.Fenced(t, dsn, harness.Books(rules...))
			if name == "" {
				if err := write(db, 20); err != nil {
					t.Errorf("%s: %v", says, err)
				}
				return
			}
			sh.Exec(t, "UPDATE books SET price = 10 WHERE id = 1")
			unchanged := sh.Unchanged(t)
			wantRefused(t, says, name, func() error { return write(db, 30) })
			if _, err := db.ExecContext(t.Context(), "UPDATE pens SET price = 1"); err != nil {
				t.Errorf("%s, another table: %v", says, err)
			}
			unchanged()
			taken := b.Fenced(t, dsn, harness.Books(rules...), sqlfence.WithUntestedServer(name))
			if err := write(taken, 40); err != nil {
				t.Errorf("%s, with its risk taken: %v", says, err)
			}
			_, err := taken.ExecContext(harness.Holding(t, 3), "UPDATE books SET price = 50 WHERE id = 1")
			if !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("%s, with its risk taken, stale: %v", says, err)
			}
		})
	})
}
