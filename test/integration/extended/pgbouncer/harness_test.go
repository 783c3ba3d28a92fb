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

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// pgbouncerConns is the number of server connections that the clients of a pgbouncer share.
const pgbouncerConns = 3

// pgbouncerIni takes the server's host and port, the schema, the pooling mode, the number of server connections, and
// the folder twice. pgbouncer sets search_path itself, because it doesn't forward the client's search_path.
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

// behindPgbouncer starts a pgbouncer in transaction mode for the server of dsn, and returns the DSN of the pgbouncer.
// dsn must come from postgresSchema.
func behindPgbouncer(t testing.TB, dsn string) string {
	t.Helper()
	return behindPgbouncerIn(t, dsn, "transaction", pgbouncerConns)
}

// behindPgbouncerIn is behindPgbouncer with the given pooling mode and number of server connections.
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

// pgbouncerDir creates a folder, and returns the user under whom pgbouncer must run, because pgbouncer refuses to run
// as root. The user is nil if the test doesn't run as root.
func pgbouncerDir(t testing.TB) (string, *syscall.Credential) {
	t.Helper()
	dir, err := os.MkdirTemp("", "sqlfence") // the pooler's user can't enter the folder of t.TempDir
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

// runPooler starts a pooler, waits until the pooler accepts connections on its socket, and stops it with the signal at
// the end of the test. The signal must be one that stops the pooler without waiting for its clients.
func runPooler(t testing.TB, owner *syscall.Credential, stop syscall.Signal, socket, path string, args ...string) {
	t.Helper()
	var log strings.Builder
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	// The kernel kills the pooler if the test is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its error is the kill
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
