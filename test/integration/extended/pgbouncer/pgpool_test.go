//go:build linux

package pgbouncer_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// pgpoolConf takes the folder, the server's host and port, and the number of server connections that the clients share.
// pgpool doesn't reset a session between clients, so settings of the previous client remain.
const pgpoolConf = `backend_clustering_mode = 'streaming_replication'
listen_addresses = ''
port = 9999
socket_dir = '%[1]s'
pcp_socket_dir = '%[1]s'
wd_ipc_socket_dir = '%[1]s'
pid_file_name = '%[1]s/pid'
logdir = '%[1]s'
backend_hostname0 = '%[2]s'
backend_port0 = %[3]s
backend_weight0 = 1
num_init_children = %[4]d
max_pool = 1
child_life_time = 0
reset_query_list = 'ABORT'
sr_check_period = 0
health_check_period = 0
enable_pool_hba = off
allow_clear_text_frontend_auth = on
failover_on_backend_error = off
memory_cache_enabled = off
`

// behindPgpool starts a pgpool for the server of dsn, and returns the DSN of the pgpool.
func behindPgpool(t *testing.T, dsn string) string {
	t.Helper()
	return behindPgpoolWith(t, dsn, "")
}

// behindPgpoolWith is behindPgpool with additional configuration lines, which override pgpoolConf.
func behindPgpoolWith(t *testing.T, dsn, conf string) string {
	t.Helper()
	path := need.Program(t, "pgpool")
	u, err := url.Parse(dsn)
	if err != nil || u.Hostname() == "" {
		need.Missing(t, "postgres", fmt.Sprint("needs a URL with a host as the DSN: ", err))
	}
	dir, owner := pgbouncerDir(t)
	_, control := harness.FreeAddress(t)
	conf += "pcp_port = " + control + "\n"
	for name, text := range map[string]string{
		"conf": fmt.Sprintf(pgpoolConf, dir, u.Hostname(), u.Port(), pgbouncerConns) + conf, "pcp": "", "hba": "", "pool_passwd": "",
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		harness.Chown(t, file, owner)
	}
	// On SIGINT pgpool ends its child processes and disconnects their clients.
	runPooler(t, owner, syscall.SIGINT, filepath.Join(dir, ".s.PGSQL.9999"), path, "-n", "-f", filepath.Join(dir, "conf"), "-F", filepath.Join(dir, "pcp"), "-a", filepath.Join(dir, "hba"))
	q := u.Query()
	u.Host = ""
	q.Set("host", dir)
	q.Set("port", "9999")
	u.RawQuery = q.Encode()
	return u.String()
}

// Clients reuse server sessions with the settings of previous clients. A token that another transaction has set must
// not be accepted.
func TestPgpoolTokensOfTransactions(t *testing.T) {
	if testing.Short() {
		t.Skip("in the long run only")
	}
	harness.NeedPostgres(t)
	tokensOfTransactions(t, func(dsn string, clients int) *sql.DB {
		pooled := baseNamed("pgx").Raw(t, behindPgpool(t, dsn)+"&default_query_exec_mode=simple_protocol")
		pooled.SetMaxOpenConns(clients)
		pooled.SetMaxIdleConns(-1) // a new connection for each transaction
		harness.MustExec(t, pooled, "SET test.kept = 'by another'")
		harness.Eventually(t, "a client meets another's setting", func() bool {
			var left sql.NullString
			err := pooled.QueryRow("SELECT current_setting('test.kept', true)").Scan(&left)
			return err == nil && left.String != ""
		})
		return pooled
	}, baseNamed("pgx"))
}
