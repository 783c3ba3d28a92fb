//go:build linux

package proof

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
	"github.com/sqlfence/sqlfence/test/proof/judge"
	"github.com/sqlfence/sqlfence/test/proof/report"
	"github.com/sqlfence/sqlfence/test/proof/storm"
)

// A Python program without sqlfence uses sqlfence's protocol on a sealed table. The promises must hold.
func TestPython(t *testing.T) {
	db := storm.Postgres(t)
	p := fromPython(t, db)
	run := report.Run{Kind: report.Fence, Fence: p.Name, What: sealedLeases}
	s := overOther(db, p, true)
	s.Processes, s.Ledger = 6, history.Own
	s.Open(t)
	rounds(t, s, &run, judge.New(), othersLength())
	switch run.Verdict() {
	case "held":
	case "unknown":
		t.Skipf("no stale write was sent on this busy machine: %+v", run.Counts)
	default:
		t.Errorf("%s: %s: %+v", run.Verdict(), run.First, run.Counts)
	}
	save(t, run)
}

const sealedLeases = "leases by procedures, and a sealed table"

// fromPython returns the Python program, and prepares the database for the program.
func fromPython(t *testing.T, db *storm.Target) fence.Program {
	t.Helper()
	const python = "/usr/bin/python3" // Debian installs psycopg for this interpreter
	if out, err := exec.Command(python, "-c", "import psycopg").CombinedOutput(); err != nil {
		need.Missing(t, "psycopg", fmt.Sprintf("no psycopg: %v %s", err, out))
	}
	sealed(t, db)
	return fence.Program{Name: "sqlfence's protocol, from Python", Command: []string{python, "others/fence.py"}}
}

// sealed creates the ledger, the lease procedures and the sealed table fenced.
func sealed(t *testing.T, target *storm.Target) {
	t.Helper()
	db, err := sqlfence.Open("pgx", target.DSN, sqlfence.WithTable("fenced",
		sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Key("id"), sqlfence.Sealed()))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := sqlfence.Bypass(t.Context(), "the tables of the proof")
	leases, err := lease.New(db, lease.WithProcedures())
	if err == nil {
		err = leases.Setup(ctx)
	}
	for _, query := range []string{
		"CREATE TABLE fenced (id bigint PRIMARY KEY, value bigint NOT NULL DEFAULT 0, fence_token bigint NOT NULL DEFAULT 0)",
		"INSERT INTO fenced (id) SELECT n FROM generate_series(1, 8) AS n",
	} {
		if err == nil {
			_, err = db.ExecContext(ctx, query)
		}
	}
	if err == nil {
		err = schema.Seal(ctx, db)
	}
	if err != nil {
		t.Fatal(err)
	}
}
