package main

import (
	"bytes"
	"testing"

	"github.com/sqlfence/sqlfence/examples/internal/servers"
)

const story = `A is elected, with token 1.
A sets the price to 20.
B sets the price to 30: not sent:
    sqlfence: no fencing token: table "books": the token source: lease: not the leader: key "books"
A resigns.
B is elected, with token 2.
Is A the leader? false. Is B? true.
B sets the price to 40.
A sets the price to 50: not sent:
    sqlfence: no fencing token: table "books": the token source: lease: not the leader: key "books": released
A's slow request, begun under token 1, writes at last.
A sets the price to 60: refused by the database:
    sqlfence: stale fencing token: table "books": another holder has taken over "books" (its token is 2, this write's is 1); stop working, don't retry
The price is 40.
`

func TestLeader(t *testing.T) {
	for name, dsn := range map[string]string{"sqlite": "", "pgx": ""} {
		t.Run(name, func(t *testing.T) {
			if name == "pgx" {
				dsn = servers.PostgresURL(t)
			}
			var out bytes.Buffer
			if err := run(t.Context(), &out, dsn); err != nil {
				t.Error(err)
			}
			if out.String() != story {
				t.Errorf("it writes\n%s\nwant\n%s", &out, story)
			}
		})
	}
}
