// Package zombie plays the story that a fence is for, with real processes: worker A begins a job and is stopped by
// SIGSTOP, the test has worker B take the job over, and A goes on and writes late.
package zombie

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

const (
	source = "SQLFENCE_ZOMBIE_DSN" // set in A alone
	fenced = "SQLFENCE_ZOMBIE_FENCED"
)

// A Worker is the process A.
type Worker struct {
	DSN    string
	Fenced bool // else A writes past the fence, to show that the late write lands there
	in     *bufio.Reader
}

// Main is for a TestMain. In the process A it calls work, and an error of it ends the process with the status 1; else it runs
// the tests.
func Main(m *testing.M, work func(w *Worker) error) {
	dsn := os.Getenv(source)
	if dsn == "" {
		harness.Main(m)
		return
	}
	if err := work(&Worker{DSN: dsn, Fenced: os.Getenv(fenced) == "true", in: bufio.NewReader(os.Stdin)}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Say tells the test something.
func (w *Worker) Say(what ...any) { fmt.Println(append([]any{"A:"}, what...)...) }

// Pause is where A is stopped: it has begun the job, and is about to write.
func (w *Worker) Pause() {
	w.Say("working")
	w.Wait()
}

// Wait waits until the test wants A to go on.
func (w *Worker) Wait() {
	if _, err := w.in.ReadString('\n'); err != nil {
		os.Exit(1) // the test has ended
	}
}

// Play starts A, stops A in its pause, calls takeOver, lets A continue, and returns A's report about its late write.
// Play returns after A has ended.
func Play(t *testing.T, dsn string, fence bool, takeOver func()) (said string) {
	t.Helper()
	a := exec.Command(os.Args[0])
	a.Env = append(os.Environ(), source+"="+dsn, fmt.Sprint(fenced, "=", fence))
	a.Stderr = os.Stderr
	in, err := a.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := a.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = a.Process.Kill()
		_ = a.Wait()
	}()
	lines := bufio.NewScanner(out)
	hear := func() string {
		for lines.Scan() {
			if said, ok := strings.CutPrefix(lines.Text(), "A: "); ok {
				return said
			}
		}
		return "nothing more"
	}
	if first := hear(); first != "working" {
		t.Fatalf("A says %q before it works", first)
	}
	signal(t, a, syscall.SIGSTOP)
	takeOver()
	signal(t, a, syscall.SIGCONT)
	goOn(t, in)
	said = hear()
	goOn(t, in)
	if more := hear(); more != "nothing more" {
		t.Errorf("A says %q at its end", more)
	}
	if err := a.Wait(); err != nil {
		t.Errorf("A: %v", err)
	}
	return said
}

func signal(t *testing.T, a *exec.Cmd, s syscall.Signal) {
	t.Helper()
	if err := a.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func goOn(t *testing.T, in io.Writer) {
	t.Helper()
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
}

// NewBase returns the driver that the stories are played with, on PostgreSQL, and a fresh database with a result to
// write.
func NewBase(t *testing.T) (b harness.Base, dsn string) {
	t.Helper()
	harness.NeedPostgres(t)
	b = harness.Bases[slices.IndexFunc(harness.Bases, func(b harness.Base) bool { return b.Name == "pgx" })]
	dsn = b.DSN(t)
	Exec(t, b.Raw(t, dsn), "CREATE TABLE results (job bigint PRIMARY KEY, worker text)",
		"INSERT INTO results (job, worker) VALUES (1, 'none')")
	return b, dsn
}

// Exec executes statements.
func Exec(t *testing.T, db *sql.DB, queries ...string) {
	t.Helper()
	for _, query := range queries {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
}

// Write writes the result as the worker, though the context may have ended: as a process does that was stopped in front
// of the call.
func Write(ctx context.Context, db *sql.DB, worker string) error {
	_, err := db.ExecContext(context.WithoutCancel(ctx), "UPDATE results SET worker = $1 WHERE job = 1", worker)
	return err
}

// Wrote returns the worker that has written the result last.
func Wrote(t *testing.T, db *sql.DB) (worker string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT worker FROM results WHERE job = 1").Scan(&worker); err != nil {
		t.Fatal(err)
	}
	return worker
}

// Outcome is what A says of its write.
func Outcome(err error) string {
	switch {
	case err == nil:
		return "landed"
	case errors.Is(err, sqlfence.ErrStale):
		return "refused"
	}
	return err.Error()
}

// Check fails the test unless A's late write was refused, if it was fenced; else unless it has landed.
func Check(t *testing.T, db *sql.DB, fence bool, said string) {
	t.Helper()
	want, by := "refused", "B"
	if !fence {
		want, by = "landed", "A"
	}
	if wrote := Wrote(t, db); said != want || wrote != by {
		t.Errorf("fenced: %v: A says %q, and the result is %s's; want %q, and %s's", fence, said, wrote, want, by)
	}
}
