// Package scripts_test runs the scripts of the repository.
package scripts_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// fakeGo replaces the go command. It lists a package whose tests never end. The tests start two processes; if STOPS is
// set, the second one is stopped by a signal.
const fakeGo = `#!/bin/sh
case $1 in
list) printf "%s\n" example.com/books example.com/test/integration/promises/books ;;
test)
	sleep 3600 &
	echo $! >>"$STARTED"
	sleep 3600 &
	[ -z "$STOPS" ] || kill -STOP $!
	echo $! >>"$STARTED"
	echo $$ >>"$STARTED"
	wait
	;;
esac
`

// A signal that ends make test must end its tests and servers at once, and must leave no process and no file.
func TestInterrupt(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the servers of a whole run, four times")
	}
	harness.ServerPrograms(t)
	// A shell starts a background command with SIGINT ignored, and its processes inherit that. A signal that this process
	// handles has its default action in the processes that it starts.
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, os.Interrupt)
	defer signal.Stop(handled)
	for _, way := range []struct {
		name    string
		command []string
		signal  syscall.Signal
		whole   bool   // signals the process group, as a terminal does
		stops   string // not empty: a process is stopped; the kernel may then end the group when a shell ends
	}{
		{"scripts/test", []string{"scripts/test"}, syscall.SIGTERM, false, ""},
		{"make test", []string{"make", "test"}, syscall.SIGTERM, false, ""},
		{"a stopped process", []string{"scripts/test"}, syscall.SIGTERM, false, "yes"},
		{"^C", []string{"make", "test"}, syscall.SIGINT, true, ""},
	} {
		t.Run(way.name, func(t *testing.T) {
			dir, tmp := repository(t), temporary(t)
			started := filepath.Join(dir, "started")
			cmd := exec.Command(way.command[0], way.command[1:]...)
			var out bytes.Buffer
			cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
			cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "STARTED="+started, "STOPS="+way.stops, "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"),
				"SQLFENCE_POSTGRES_DSN=", "SQLFENCE_MYSQL_DSN=", "MAKEFLAGS=", "MAKELEVEL=")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			t.Cleanup(func() {
				for _, pid := range append(pids(t, started), within(t, tmp)...) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			})

			harness.Eventually(t, "servers and tests run", func() bool {
				select {
				case err := <-ended:
					t.Fatalf("it has ended: %v\n%s", err, out.String())
				default:
				}
				return len(pids(t, started)) >= 3 && len(within(t, tmp)) >= 2
			})
			running := append(pids(t, started), within(t, tmp)...)
			to := cmd.Process.Pid
			if way.whole {
				to = -to
			}
			if err := syscall.Kill(to, way.signal); err != nil {
				t.Fatal(err)
			}
			harness.Eventually(t, "it ends", func() bool {
				select {
				case err := <-ended:
					if err == nil {
						t.Error("an interrupted test has succeeded")
					}
					return true
				default:
					return false
				}
			})
			for _, pid := range running {
				if runs(pid) {
					t.Errorf("process %d still runs: %s", pid, commandLine(pid))
				}
			}
			if left := within(t, tmp); len(left) > 0 {
				t.Errorf("the processes %d use its folder", left)
			}
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("in the temporary folder is left: %v, %v", left, err)
			}
			if t.Failed() {
				t.Logf("it prints:\n%s", out.String())
			}
		})
	}
}

// repository returns a folder with the scripts, and with fakeGo in place of the go command.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "scripts"), os.DirFS("../../../../scripts")); err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"Makefile": string(makefile), "bin/go": fakeGo, "test/integration/go.mod": "module example.com\n",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// temporary returns a folder with access for other users. Its name is short, because a server's socket is inside.
func temporary(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err == nil {
		err = os.Chmod(dir, 0o777|os.ModeSticky)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// pids reads the process ids in a file.
func pids(t *testing.T, file string) (found []int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, pid)
	}
	return found
}

// within returns the processes whose command line contains a folder, such as the servers.
func within(t *testing.T, folder string) (found []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && strings.Contains(commandLine(pid), folder+"/") {
			found = append(found, pid)
		}
	}
	return found
}

func commandLine(pid int) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return strings.ReplaceAll(string(text), "\x00", " ")
}

// runs reports whether a process is running. A zombie process has no command line.
func runs(pid int) bool { return commandLine(pid) != "" }
