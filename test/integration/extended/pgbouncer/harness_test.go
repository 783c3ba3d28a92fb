//go:build linux

package pgbouncer_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sqlfence/sqlfence/internal/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// pgbouncerConns is how many connections to the server the clients of a
// pgbouncer share.
const pgbouncerConns = 3

// pgbouncerIni is filled in with where the server is, the schema, the mode,
// how many connections, and twice the folder. The schema is set by pgbouncer, which
// doesn't pass on search_path.
const pgbouncerIni = `[databases]
* = host=%s port=%s connect_query='SET search_path TO %s'
[pgbouncer]
pool_mode = %s
default_pool_size = %d
max_client_conn = 600
unix_socket_dir = %s
auth_type = plain
auth_file = %s/users
ignore_startup_parameters = extra_float_digits
server_connect_timeout = 120
server_login_retry = 1
query_wait_timeout = 0
`

// behindPgbouncer starts a pgbouncer in transaction mode before the server of
// dsn, which is one of postgresSchema's, and returns a DSN that leads through it.
func behindPgbouncer(t testing.TB, dsn string) string {
	t.Helper()
	return behindPgbouncerIn(t, dsn, "transaction", pgbouncerConns)
}

// behindPgbouncerIn is behindPgbouncer in another mode, with another number of connections to the server.
func behindPgbouncerIn(t testing.TB, dsn, mode string, conns int) string {
	t.Helper()
	path := need.Program(t, "pgbouncer")
	u, err := url.Parse(dsn)
	if err != nil || u.Hostname() == "" {
		need.Missing(t, "postgres", fmt.Sprint("needs a URL with a host as the DSN: ", err))
	}
	q := u.Query()
	port := u.Port()
	if port == "" {
		port = "5432"
	}
	dir, owner := pgbouncerDir(t)
	password, _ := u.User.Password()
	for name, text := range map[string]string{
		"ini":   fmt.Sprintf(pgbouncerIni, u.Hostname(), port, q.Get("search_path"), mode, conns, dir, dir),
		"users": fmt.Sprintf("%q %q\n", u.User.Username(), password),
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		harness.Chown(t, file, owner)
	}
	runPooler(t, owner, syscall.SIGKILL, filepath.Join(dir, ".s.PGSQL.6432"), path, filepath.Join(dir, "ini"))

	u.Host = ""
	q.Del("search_path")
	q.Set("host", dir)
	q.Set("port", "6432")
	u.RawQuery = q.Encode()
	return u.String()
}

// pgbouncerDir makes a folder, and says whose it is: pgbouncer refuses to run as
// root. Nil is the user who runs the test.
func pgbouncerDir(t testing.TB) (string, *syscall.Credential) {
	t.Helper()
	dir, err := os.MkdirTemp("", "sqlfence") // t.TempDir lies in a folder that others can't enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if os.Geteuid() != 0 {
		return dir, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(nobody.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	owner := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	harness.Chown(t, dir, owner)
	return dir, owner
}

// runPooler runs a pooler until the test ends, when the signal stops it at once, and waits until it answers on its
// socket.
func runPooler(t testing.TB, owner *syscall.Credential, stop syscall.Signal, socket, path string, args ...string) {
	t.Helper()
	var log strings.Builder
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	// It doesn't outlive a test that is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(stop)
		<-ended
		if t.Failed() {
			t.Logf("%s:\n%s", path, log.String())
		}
	})
	harness.Eventually(t, path+" answers", func() bool {
		select {
		case <-ended:
			t.Fatalf("%s has ended:\n%s", path, log.String())
		default:
		}
		c, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
}
