//go:build linux

package storm

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// pgbouncerIni shares few connections among the transactions of all processes.
const pgbouncerIni = `[databases]
* = host=127.0.0.1 port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
user = %s
pool_mode = transaction
default_pool_size = 8
max_client_conn = 600
auth_type = plain
auth_file = %s
ignore_startup_parameters = extra_float_digits,default_transaction_isolation
server_login_retry = 1
`

// Pgbouncer is PostgreSQL behind a pgbouncer in transaction mode. The wire is between the processes and that.
func Pgbouncer(t *testing.T) *Target {
	t.Helper()
	program := need.Program(t, "pgbouncer")
	server := harness.NewServer(t, durable)
	server.Start(t)
	db := onServer(t, server)
	db.Database, db.before = "pgbouncer", " behind pgbouncer"
	db.Forms = []string{"returning", "merge"} // a session's prepared statements are lost
	folder := sharedFolder(t)
	u, err := url.Parse(db.direct)
	if err != nil {
		t.Fatal(err)
	}
	address, port := harness.FreeAddress(t)
	user := ""
	if os.Geteuid() == 0 { // it doesn't run as root
		user = "daemon"
	}
	ini, users := filepath.Join(folder, "ini"), filepath.Join(folder, "users")
	for file, text := range map[string]string{
		ini:   fmt.Sprintf(pgbouncerIni, u.Port(), port, user, users),
		users: fmt.Sprintf("%q %q\n", u.User.Username(), server.Password),
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	harness.Run(t, address, program, ini)
	u.Host = address
	db.Wire = NewWire(t, u.String())
	db.DSN = db.Wire.DSN
	return db
}

// sharedFolder creates a folder that other users can read, for programs that don't run as root.
func sharedFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "sqlfence") // t.TempDir lies in a folder that others can't enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}
