package main

import (
	"bytes"
	"testing"

	"github.com/sqlfence/sqlfence/examples/internal/servers"
)

const story = `A has books:000000000000001.
A adds three books in a batch ... done
B has books:000000000000002.
B adds three books in a batch ... done
A sets a price ... sqlfence: stale fencing token: table "books": another holder has taken over "books" (its token is 2, this write's is 1); stop working, don't retry
A adds three more ... sqlfence: stale fencing token: table "books": another holder has taken over "books" (its token is 2, this write's is 1); stop working, don't retry
A raises prices in a transaction ... sqlfence: stale fencing token: table "books": another holder has taken over "books" (its token is 2, this write's is 1); stop working, don't retry
B raises prices in a transaction ... done
The prices are [1:21 2:21 3:21 4:21 5:21 6:21]
`

func TestPgx(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, servers.PostgresURL(t)); err != nil {
		t.Error(err)
	}
	if out.String() != story {
		t.Errorf("it writes\n%s\nwant\n%s", &out, story)
	}
}
