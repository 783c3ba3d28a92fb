//go:build linux

package harness

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/need"
)

// A MariaDB is a MariaDB server of the test's own, on loopback, which can crash.
type MariaDB struct {
	program, dir, user string
	address, port      string
	process            *exec.Cmd // nil while it doesn't run
	log                strings.Builder
	conf               []string
}

// mariadbInit leaves one user, who needs a password.
const mariadbInit = `DELETE FROM mysql.global_priv WHERE User = 'root';
FLUSH PRIVILEGES;
CREATE OR REPLACE USER sqlfence@127.0.0.1 IDENTIFIED BY 'secret';
GRANT ALL ON *.* TO sqlfence@127.0.0.1 WITH GRANT OPTION;
CREATE DATABASE IF NOT EXISTS test;
`

// NewMariaDB returns a server that runs, with options of its command line. Without its programs the test is skipped or
// fails: see [need.Missing].
func NewMariaDB(t *testing.T, conf ...string) *MariaDB {
	t.Helper()
	s := &MariaDB{conf: conf, user: "nobody"}
	s.program = need.Program(t, "mariadbd")
	install := need.Program(t, "mariadb-install-db")
	var err error
	if s.dir, err = os.MkdirTemp("", "sqlfence"); err != nil { // t.TempDir lies in a folder that others can't enter
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		_ = os.RemoveAll(s.dir)
	})
	if os.Geteuid() == 0 { // as whom it gives up its rights
		Chown(t, s.dir, credential(t, s.user))
	} else {
		s.user = os.Getenv("USER")
	}
	if err := os.WriteFile(s.file("init.sql"), []byte(mariadbInit), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(install, "--no-defaults", "--user="+s.user, "--datadir="+s.file("data"), "--skip-test-db",
		"--auth-root-authentication-method=normal")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v\n%s", err, out)
	}
	s.address, s.port = FreeAddress(t)
	s.StartAgain(t)
	return s
}

func (s *MariaDB) file(name string) string { return filepath.Join(s.dir, name) }

// DSN returns the data source name, in the form of go-sql-driver/mysql.
func (s *MariaDB) DSN() string { return fmt.Sprintf("sqlfence:secret@tcp(%s)/test", s.address) }

// StartAgain runs the server where it ran before, and waits until it answers.
func (s *MariaDB) StartAgain(t *testing.T) {
	t.Helper()
	s.log.Reset()
	args := slices.Concat([]string{
		"--no-defaults", "--user=" + s.user, "--datadir=" + s.file("data"), "--init-file=" + s.file("init.sql"),
		"--bind-address=127.0.0.1", "--port=" + s.port, "--socket=" + s.file("socket"), "--pid-file=" + s.file("pid"),
		"--skip-name-resolve", "--max-connections=300", "--innodb-log-file-size=64M", "--innodb-buffer-pool-size=128M",
	}, s.conf)
	s.process = exec.Command(s.program, args...)
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	// It doesn't outlive a test that is killed.
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	Eventually(t, "the server answers", func() bool {
		if hasEnded(s.process.Process.Pid) {
			t.Fatalf("the server doesn't start:\n%s", s.log.String())
		}
		return db.Ping() == nil
	})
}

// Kill is a crash: the process does nothing more.
func (s *MariaDB) Kill() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}
