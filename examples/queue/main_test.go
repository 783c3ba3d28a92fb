package main

import (
	"bytes"
	"testing"

	"github.com/sqlfence/sqlfence/examples/internal/servers"
)

const story = `A takes [jobs/1:000000000000001 jobs/2:000000000000001], and is paused.
A rescuer gives them back, and B takes [jobs/1:000000000000003 jobs/2:000000000000003 jobs/3:000000000000001].
B stores the result of jobs/1:000000000000003 ... done
A wakes up.
A stores the result of jobs/2:000000000000001 ... sqlfence: stale fencing token: table "results": another holder has taken over "jobs/2" (its token is 3, this write's is 1); stop working, don't retry
A completes jobs/1:000000000000001 ... sqlfence: stale fencing token: table "jobs": another holder has taken over "jobs/1" (its token is 3, this write's is 1); stop working, don't retry
B completes jobs/1:000000000000003 ... done
The results are 1 by B
`

func TestQueue(t *testing.T) {
	servers.Each(t, func(t *testing.T, dsn string) {
		var out bytes.Buffer
		if err := run(t.Context(), &out, dsn); err != nil {
			t.Error(err)
		}
		if out.String() != story {
			t.Errorf("it writes\n%s\nwant\n%s", &out, story)
		}
	})
}
