//go:build linux

package harness

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/internal/test/need"
)

// Chown gives a file to the owner, if there is one.
func Chown(t testing.TB, path string, owner *syscall.Credential) {
	t.Helper()
	if owner == nil {
		return
	}
	if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
}

// A Server is a PostgreSQL server of the test's own, on loopback, which can crash, be
// copied and be promoted.
type Server struct {
	bin, dir, Password string
	owner              *syscall.Credential // nil: who runs the test
	Port               int
	Env                []string // of its processes, besides that of the test

	process *exec.Cmd // nil while it doesn't run
	log     strings.Builder
}

// serverConf keeps a server small. Without fsync a crash of the machine would lose data; a killed server loses only
// unwritten buffers. The shared memory is a file in the server's folder, because a killed server doesn't remove its
// shared memory.
const serverConf = `
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 40
shared_buffers = 16MB
fsync = off
dynamic_shared_memory_type = mmap
authentication_timeout = 10min
`

// NewServer returns a server that doesn't run yet, with lines of configuration.
func NewServer(t *testing.T, conf string) *Server {
	t.Helper()
	return NewServerIn(t, "", conf)
}

// NewServerIn is [NewServer] with its data in a folder of the test's choice; none means the one for temporary files.
func NewServerIn(t *testing.T, folder, conf string) *Server {
	t.Helper()
	if !own.drops {
		t.Fatal("what the server begins with would stay: the TestMain of the package has to call harness.Main")
	}
	if testing.Short() { // such a run starts servers only if it has one
		NeedPostgres(t)
	}
	holds(t, "PostgreSQL")
	s := &Server{bin: ServerPrograms(t), Password: "secret"}
	if os.Geteuid() == 0 { // as whom it refuses to run
		s.owner = credential(t, "postgres", "nobody")
	}
	var err error
	if s.dir, err = os.MkdirTemp(folder, "sqlfence"); err != nil { // t.TempDir lies in a folder that others can't enter
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill(t)
		_ = os.RemoveAll(s.dir)
	})
	Chown(t, s.dir, s.owner)
	s.run(t, "cp", "-a", s.cluster(t), s.data())
	s.Configure(t, serverConf+conf)
	return s
}

// cluster returns the folder with the data of a new server. initdb takes as long as many tests, so a process runs it
// once.
func (s *Server) cluster(t *testing.T) string {
	t.Helper()
	clusters.make.Do(func() {
		dir, err := os.MkdirTemp("", "sqlfence")
		if err != nil {
			t.Fatal(err)
		}
		clusters.dir = dir
		Chown(t, dir, s.owner)
		file := filepath.Join(dir, "password")
		if err := os.WriteFile(file, []byte(s.Password), 0o600); err != nil {
			t.Fatal(err)
		}
		Chown(t, file, s.owner)
		s.run(t, filepath.Join(s.bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "sqlfence", "--pwfile="+file,
			"--auth=md5", "--encoding=UTF8", "--locale=C", "--wal-segsize=1", "--no-sync")
	})
	return filepath.Join(clusters.dir, "data")
}

// ServerPrograms returns the folder of PostgreSQL's programs. Without them the test is skipped or fails: see
// [need.Missing].
func ServerPrograms(t *testing.T) string {
	t.Helper()
	candidates, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian keeps them
	slices.Sort(candidates)
	slices.Reverse(candidates)
	if path, err := exec.LookPath("initdb"); err == nil {
		candidates = append([]string{path}, candidates...)
	}
	for _, path := range candidates {
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "postgres")); err == nil {
			return filepath.Dir(path)
		}
	}
	need.Missing(t, "postgres", "no programs of a PostgreSQL server found: put initdb and postgres on PATH")
	return ""
}

// credential returns the credential of the first existing user.
func credential(t *testing.T, names ...string) *syscall.Credential {
	t.Helper()
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	t.Fatalf("none of the users %q exists", names)
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// run runs a program as the server's owner.
func (s *Server) run(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// Configure adds lines to the configuration, which win over those before.
func (s *Server) Configure(t *testing.T, conf string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(conf + "\n"); err != nil {
		t.Fatal(err)
	}
}

// Signal creates a signal file, which sets how the server starts.
func (s *Server) Signal(t *testing.T, name string) {
	t.Helper()
	file := filepath.Join(s.data(), name)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	Chown(t, file, s.owner)
}

// Start runs the server and waits until it answers.
func (s *Server) Start(t *testing.T) {
	t.Helper()
	for tries := 1; ; tries++ {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.Port = listener.Addr().(*net.TCPAddr).Port
		_ = listener.Close()
		if s.start(t) {
			return
		}
		if tries == 5 { // until it listens, somebody else may have taken the port
			t.Fatalf("the server doesn't start:\n%s", s.log.String())
		}
	}
}

// StartAgain starts the server on its former port. Clients can then reconnect.
func (s *Server) StartAgain(t *testing.T) {
	t.Helper()
	if !s.start(t) {
		t.Fatalf("the server doesn't start:\n%s", s.log.String())
	}
}

// start waits until the server answers, or has ended.
func (s *Server) start(t *testing.T) (answers bool) {
	t.Helper()
	s.log.Reset()
	s.process = exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data(), "-p", strconv.Itoa(s.Port))
	s.process.Dir = s.dir
	s.process.Env = append(os.Environ(), s.Env...)
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	// It doesn't outlive a test that is killed.
	s.process.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner, Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	Eventually(t, "the server answers", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // it may be somebody else who listens
		defer cancel()
		answers = db.PingContext(ctx) == nil
		return answers || hasEnded(s.process.Process.Pid)
	})
	if !answers {
		_ = s.process.Wait()
		s.process = nil
	}
	return answers
}

// hasEnded reports whether a process has, also if nobody has waited for it.
func hasEnded(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// DSN returns the data source name of the running server.
func (s *Server) DSN() string {
	return fmt.Sprintf("postgres://sqlfence:%s@127.0.0.1:%d/postgres?sslmode=disable", url.QueryEscape(s.Password), s.Port)
}

// Stop has the server write all that it knows and end.
func (s *Server) Stop(t *testing.T) {
	t.Helper()
	if err := s.process.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = s.process.Wait()
	s.process = nil
}

// Kill is a crash: none of its processes does anything more.
func (s *Server) Kill(t *testing.T) {
	t.Helper()
	if s.process == nil {
		return
	}
	pid := s.process.Process.Pid
	_ = s.process.Process.Signal(syscall.SIGSTOP) // or it would react to the end of its children
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Error(err)
	}
	var children []int
	for _, field := range strings.Fields(string(text)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		children = append(children, child)
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
	s.process = nil
	// The shared memory has to be free before the next start.
	Eventually(t, "the end of the server's processes", func() bool {
		return !slices.ContainsFunc(children, func(child int) bool { return !hasEnded(child) })
	})
}

// CopyTo replaces the other server's data with the data of s. s must be stopped.
func (s *Server) CopyTo(t *testing.T, other *Server) {
	t.Helper()
	if err := os.RemoveAll(other.data()); err != nil {
		t.Fatal(err)
	}
	other.run(t, "cp", "-a", s.data(), other.data())
	for _, name := range []string{"standby.signal", "recovery.signal"} {
		_ = os.Remove(filepath.Join(other.data(), name))
	}
}

// Follow makes s a streaming standby of the primary, and starts s.
func (s *Server) Follow(t *testing.T, primary *Server) {
	t.Helper()
	primary.Stop(t)
	primary.CopyTo(t, s)
	primary.StartAgain(t) // where its other standbys look for it
	s.Signal(t, "standby.signal")
	s.Configure(t, fmt.Sprintf("primary_conninfo = 'host=127.0.0.1 port=%d user=sqlfence password=%s'", primary.Port, primary.Password))
	s.Start(t)
}

// CutOff waits until the standby s has replayed all records of its primary, and then stops the replication.
func (s *Server) CutOff(t *testing.T, primary *Server) {
	t.Helper()
	at := primary.Ask(t, "SELECT pg_logical_emit_message(true, 'sqlfence', 'here')::text") // flushed with its commit
	Eventually(t, "the standby has caught up", func() bool {
		return s.Ask(t, "SELECT (pg_last_wal_replay_lsn() >= $1::text::pg_lsn)::text", at) == "true"
	})
	s.Configure(t, "primary_conninfo = ''")
	s.Ask(t, "SELECT pg_reload_conf()::text")
	Eventually(t, "the standby is cut off", func() bool {
		return s.Ask(t, "SELECT count(*)::text FROM pg_stat_wal_receiver") == "0"
	})
}

// Promote makes a primary of a standby.
func (s *Server) Promote(t *testing.T) {
	t.Helper()
	if s.Ask(t, "SELECT pg_promote(true, 60)::text") != "true" {
		t.Fatal("the standby was not promoted")
	}
}

// Open opens the server with a base driver, until the function returned is called.
func (s *Server) Open(t *testing.T, b Base) (*sql.DB, func()) {
	t.Helper()
	db, err := sql.Open(b.DriverName, s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	return db, func() { _ = db.Close() }
}

// Ask returns the single value of a query.
func (s *Server) Ask(t *testing.T, query string, args ...any) (value string) {
	t.Helper()
	db, done := s.Open(t, Base{DriverName: "pgx", AsWritten: true})
	defer done()
	if err := db.QueryRowContext(context.Background(), query, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v\n%s", query, err, s.log.String())
	}
	return value
}
