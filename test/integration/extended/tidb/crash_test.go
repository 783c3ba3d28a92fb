//go:build linux

package tidb_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A crashing server is a TiDB server that the test can kill and start again. Its storage is a folder.
type crashing struct {
	program, dir, address, port string
	process                     *osexec.Cmd
}

func newCrashing(t *testing.T) *crashing {
	t.Helper()
	serverDSN(t) // the test runs where TiDB is wanted
	program, err := osexec.Command("../../../../scripts/tidb-server").Output()
	if err != nil {
		t.Fatal(err)
	}
	s := &crashing{program: strings.TrimSpace(string(program)), dir: t.TempDir()}
	s.address, s.port = harness.FreeAddress(t)
	if err := errors.Join(os.WriteFile(filepath.Join(s.dir, "init.sql"), []byte("ALTER USER root@'%' IDENTIFIED BY 'secret';\n"), 0o600),
		os.WriteFile(filepath.Join(s.dir, "config.toml"), fmt.Appendf(nil, "initialize-sql-file = %q\ntemp-dir = %q\nsocket = %q\n"+
			"[log]\nlevel = \"error\"\nslow-query-file = %q\n[log.file]\nfilename = %q\n[status]\nreport-status = false\n",
			s.dir+"/init.sql", s.dir+"/tmp", s.dir+"/socket", s.dir+"/slow.log", s.dir+"/tidb.log"), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return s
}

func (s *crashing) dsn() string { return "root:secret@tcp(" + s.address + ")/test?timeout=5s" }

// start starts the server, and waits until it answers.
func (s *crashing) start(t *testing.T) {
	t.Helper()
	s.process = osexec.Command(s.program, "--config="+s.dir+"/config.toml", "--store=unistore", "--path="+s.dir+"/data",
		"--host=127.0.0.1", "-P", s.port)
	s.process.Env = append(os.Environ(), "TMPDIR="+s.dir)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	db := open(t, s.dsn())
	for range 600 {
		if db.Ping() == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the server doesn't answer within a minute")
}

func (s *crashing) kill() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}

// The server is killed every ten seconds while a holder writes under ever newer tokens, and others write under stale
// ones. No stale write lands, and no acknowledged write is lost.
func TestStormWhileTheServerIsKilled(t *testing.T) {
	s := newCrashing(t)
	s.start(t)
	plain := open(t, s.dsn())
	for query := range strings.SplitSeq(schema, ";") {
		exec(t, plain, query)
	}
	reset(t, plain)
	rowFence, ledger := fence(t, s.dsn(), sqlfence.RowFence("fence_token")), fence(t, s.dsn(), sqlfence.RowFence("fence_token"), sqlfence.Ledger())
	store := harness.NewStore(t, plain)
	for _, db := range []*sql.DB{rowFence, ledger} {
		db.SetMaxIdleConns(8)
	}
	exec(t, plain, "REPLACE INTO fencing_tokens VALUES ('books', 4)")
	var newest, stale, landed, unknown, failed atomic.Int64
	newest.Store(4)
	over := make(chan struct{})
	running := func() bool {
		select {
		case <-over:
			return false
		default:
			return !t.Failed()
		}
	}
	var clients sync.WaitGroup
	clients.Go(func() {
		for running() {
			token, err := store.Issue(t.Context(), "books")
			if err == nil {
				_, err = ledger.ExecContext(holding(token.Value), "UPDATE books SET price = ?", token.Value)
			}
			switch {
			case err == nil:
				newest.Store(token.Value)
				landed.Add(1)
			case errors.Is(err, sqlfence.ErrUnknownOutcome):
				unknown.Add(1)
			default:
				failed.Add(1)
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
	for seed := range 6 {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(seed)))
			for running() {
				value := newest.Load() - 1 - random.Int64N(2)
				db := []*sql.DB{rowFence, ledger}[random.IntN(2)]
				changed, err := writeOnce(holding(value), db, stormy[random.IntN(2)], value, random.IntN(3) == 0, random.IntN(2) == 0)
				switch {
				case err == nil && changed > 0:
					t.Errorf("A STALE WRITE LANDED under token %d", value)
				case errors.Is(err, sqlfence.ErrStale):
					stale.Add(1)
				case err != nil:
					failed.Add(1)
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	kills := 0
	for range 4 {
		time.Sleep(10 * time.Second)
		s.kill()
		kills++
		acknowledged := newest.Load()
		s.start(t)
		var price, token int64
		if err := plain.QueryRow("SELECT MIN(b.price), MAX(t.token) FROM books b, fencing_tokens t WHERE t.name = 'books'").Scan(&price, &token); err != nil ||
			price < acknowledged || token < price {
			t.Errorf("after kill %d: price %d, token %d, %v; want at least %d", kills, price, token, err, acknowledged)
		}
	}
	close(over)
	clients.Wait()
	var apart int
	if err := plain.QueryRow("SELECT COUNT(*) FROM books WHERE price <> fence_token").Scan(&apart); err != nil || apart > 0 {
		t.Errorf("%d rows have the price of another token: %v", apart, err)
	}
	if landed.Load() == 0 || stale.Load() == 0 {
		t.Error("the test tests nothing")
	}
	t.Logf("%d kills; %d stale writes refused; %d writes landed, %d unknown; %d errors", kills, stale.Load(), landed.Load(), unknown.Load(), failed.Load())
}
