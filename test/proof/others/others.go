// Package others is fences that aren't sqlfence, as programs under test: controls, which a suite has to catch, each a
// reduction of a mistake that was made in earnest; and adapters, which are how people fence by hand. All write the table
// fenced (id, value and what they need), and hold locks of its rows.
package others

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/sqlfence/sqlfence/test/proof/fence"
)

// A Fence is one of them.
type Fence struct {
	Name    string
	What    string                              // how it fences, or doesn't
	Ledger  bool                                // it promises that only the newest token writes, and keeps it in the table locks
	Sound   bool                                // it is known to hold
	Needs   func(t *testing.T) (address string) // starts the service that it needs
	Forgets func(address string)                // the service loses its data: a fault
	columns string                              // of fenced, besides id and value
	setup   []string
	acquire func(ctx context.Context, h *holder) (token int64, ok bool, err error)
	write   func(ctx context.Context, h *holder, hold func()) (rows int64, err error)
	release func(ctx context.Context, h *holder) error
}

// A holder is a process's lock and the value of its next write.
type holder struct {
	*program
	lock  string
	name  string // of the lock
	row   int64
	token int64
	until time.Time // by its own clock
	extra int64     // what the fence wants to remember: an epoch, a version
	value int64
	ttl   time.Duration
	pause time.Duration // between the lock and what is read under it
}

type program struct {
	Fence   Fence
	db      *sql.DB
	process int
	clock   time.Duration // how far the clock is ahead
	held    sync.Map      // *holder by lock
}

// Service is in the environment of a fence's processes: the address of the service that it needs.
const Service = "SQLFENCE_PROOF_SERVICE"

// All returns all fences.
func All() []Fence { return slices.Concat(Controls, Adapters, Careless) }

// Find returns the fence of a name.
func Find(name string) (Fence, bool) {
	for _, f := range All() {
		if f.Name == name {
			return f, true
		}
	}
	return Fence{}, false
}

// Main is the program of a fence.
func Main(f Fence) {
	p := &program{Fence: f}
	if err := fence.Serve(os.Stdin, os.Stdout, p.answer); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// errStale is what a write returns that the fence has refused.
var errStale = errors.New("stale")

func (p *program) answer(r fence.Request) fence.Answer {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	a, err := p.do(ctx, r)
	switch {
	case errors.Is(err, errStale):
		return fence.Answer{Is: fence.Stale}
	case err != nil && r.Do == fence.Write && !refused(err):
		return fence.Answer{Is: fence.Unknown, Error: err.Error()}
	case err != nil:
		return fence.Answer{Is: fence.Failed, Error: err.Error()}
	case a.Is == "":
		a.Is = fence.OK
	}
	return a
}

func (p *program) do(ctx context.Context, r fence.Request) (fence.Answer, error) {
	switch r.Do {
	case fence.Open:
		return fence.Answer{}, p.open(ctx, r)
	case fence.Acquire:
		return p.acquire(ctx, r)
	case fence.Write:
		return p.write(ctx, r)
	case fence.Release:
		h, ok := p.held.LoadAndDelete(r.Lock)
		if !ok {
			return fence.Answer{Is: fence.Refused}, nil
		}
		return fence.Answer{}, p.Fence.release(ctx, h.(*holder))
	}
	return fence.Answer{}, fmt.Errorf("can't %q", r.Do)
}

func (p *program) acquire(ctx context.Context, r fence.Request) (fence.Answer, error) {
	ttl := time.Duration(r.TTL) * time.Millisecond
	h := &holder{program: p, name: r.Name, lock: fmt.Sprintf("%d-%d", p.process, r.ID), ttl: ttl, until: p.now().Add(ttl)}
	h.pause = time.Duration(r.Hold) * time.Millisecond
	if _, err := fmt.Sscanf(r.Name, "fenced/%d", &h.row); err != nil {
		return fence.Answer{}, err
	}
	token, ok, err := p.Fence.acquire(ctx, h)
	if err != nil || !ok {
		return fence.Answer{Is: fence.Held}, err
	}
	h.token = token
	p.held.Store(h.lock, h)
	return fence.Answer{Token: token, Lock: h.lock}, nil
}

func (p *program) write(ctx context.Context, r fence.Request) (fence.Answer, error) {
	h := &holder{program: p, lock: r.Lock, name: r.Tokens[0].Name, row: r.Steps[0].Row, token: r.Tokens[0].Value}
	if known, ok := p.held.Load(r.Lock); ok {
		h = known.(*holder)
	}
	mine := *h
	mine.value = r.ID
	rows, err := p.Fence.write(ctx, &mine, func() { time.Sleep(time.Duration(r.Hold) * time.Millisecond) })
	if err == nil && rows == 0 {
		err = errStale
	}
	return fence.Answer{Rows: rows}, err
}

func (p *program) now() time.Time { return time.Now().Add(p.clock) }

func (p *program) open(ctx context.Context, r fence.Request) (err error) {
	p.process, p.clock = r.Process, time.Duration(r.Clock)*time.Millisecond
	if p.db, err = sql.Open("pgx", r.DSN); err != nil || !r.Setup {
		return err
	}
	columns := p.Fence.columns
	if columns != "" {
		columns = ", " + columns
	}
	statements := append([]string{
		"CREATE TABLE fenced (id bigint PRIMARY KEY, value bigint NOT NULL DEFAULT 0" + columns + ")",
		"CREATE TABLE locks (name text PRIMARY KEY, holder text NOT NULL DEFAULT '', token bigint NOT NULL DEFAULT 0, expires timestamptz NOT NULL DEFAULT '-infinity')",
		"INSERT INTO fenced (id) SELECT n FROM generate_series(1, 8) AS n",
		"INSERT INTO locks (name) SELECT 'fenced/' || n FROM generate_series(1, 8) AS n",
	}, p.Fence.setup...)
	for _, query := range statements {
		if _, err := p.db.ExecContext(ctx, query); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	return nil
}
