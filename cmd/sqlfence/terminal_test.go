//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/cli"
	"github.com/sqlfence/sqlfence/internal/test/need"
)

// terminal opens a pseudo terminal. Text written to keys is typed on the terminal.
func terminal(t *testing.T) (keys, screen *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		need.Missing(t, "terminal", fmt.Sprint("no pseudo terminals: ", err))
	}
	t.Cleanup(func() { keys.Close() })
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if screen, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return keys, screen
}

// newProgram returns the path of sqlfence, and has it use a fresh database.
func newProgram(t *testing.T) string {
	t.Helper()
	t.Setenv("SQLFENCE_DSN", "sqlite:"+filepath.Join(t.TempDir(), "books.db"))
	if status := cli.Main([]string{"init", "--apply"}, nil, new(strings.Builder), os.Stderr); status != 0 {
		t.Fatalf("init: status %d", status)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// A command whose input is another one can still ask on the terminal, as ssh and psql do for a password.
func TestTerminalBesideAnotherInput(t *testing.T) {
	program := newProgram(t)
	keys, screen := terminal(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience) // a group that may not read is stopped
	defer cancel()
	run := exec.CommandContext(ctx, program)
	run.Args = []string{"sqlfence", "run", "books", "--ttl", "1h", "--", "sh", "-c", "echo ready; read -r word </dev/tty; echo got $word; exit 9"}
	run.Stdout, run.Stderr = screen, screen
	run.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	screen.Close()
	got := false
	lines := bufio.NewScanner(keys)
	for lines.Scan() {
		if strings.HasSuffix(lines.Text(), "ready") {
			if _, err := keys.WriteString("secret\n"); err != nil {
				t.Fatal(err)
			}
		}
		got = got || strings.Contains(lines.Text(), "got secret")
	}
	err := run.Wait()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 9 || !got {
		t.Errorf("%v, read the word: %v; want status 9", err, got)
	}
}

// Ctrl-C on a terminal reaches the command once, even if the command has left the terminal's process group. The program
// exits with the command's status.
func TestInterruptOnATerminal(t *testing.T) {
	const script = `trap 'echo interrupted; exit 9' INT; echo ready; while :; do sleep 0.05; done`
	for name, command := range map[string][]string{
		"a command":                         {"sh", "-c", script},
		"a command in a session of its own": {"setsid", "sh", "-c", script},
	} {
		t.Run(name, func(t *testing.T) {
			program := newProgram(t)
			keys, screen := terminal(t)
			run := exec.Command(program)
			run.Args = append([]string{"sqlfence", "run", "books", "--ttl", "1h", "--"}, command...)
			run.Stdin, run.Stdout, run.Stderr = screen, screen, screen
			run.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			screen.Close()
			said, typed := 0, false
			lines := bufio.NewScanner(keys) // ends with an error when the last process closes the terminal
			for lines.Scan() {
				switch text := lines.Text(); {
				case strings.HasSuffix(text, "ready") && !typed:
					typed = true
					if _, err := keys.WriteString("\x03"); err != nil {
						t.Fatal(err)
					}
				case strings.Contains(text, "interrupted"):
					said++
				}
			}
			err := run.Wait()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 9 || said != 1 {
				t.Errorf("%v, interrupted %d times; want status 9, once", err, said)
			}
		})
	}
}

// On a narrow terminal lines break between words, and a long statement is cut around the error's place.
func TestNarrowTerminal(t *testing.T) {
	program := newProgram(t)
	keys, screen := terminal(t)
	const width = 60
	if err := unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: width}); err != nil {
		t.Fatal(err)
	}
	explain := exec.Command(program)
	explain.Args = []string{"sqlfence", "explain", "--dialect", "postgres", "--table", "books",
		"UPDATE pens SET price = 30, title = 'a long one', note = 'longer'; CREATE RULE r AS ON INSERT TO books DO INSTEAD NOTHING"}
	explain.Stdout, explain.Stderr = screen, screen
	if err := explain.Start(); err != nil {
		t.Fatal(err)
	}
	screen.Close()
	var lines []string
	for said := bufio.NewScanner(keys); said.Scan(); {
		lines = append(lines, said.Text())
		if utf8.RuneCountInString(said.Text()) > width {
			t.Errorf("wider than the terminal: %q", said.Text())
		}
	}
	if err := explain.Wait(); explain.ProcessState.ExitCode() != 3 {
		t.Fatalf("%v: %q", err, lines)
	}
	if n := len(lines); n < 4 || !strings.HasPrefix(lines[n-2], "  …") || strings.TrimSpace(lines[n-1]) != "^" {
		t.Errorf("%q, want a part of the statement, and a caret", lines)
	}
}
