// Books shows the writes that sqlfence refuses: 1,000 clients change the price of one book, on a fenced database and
// then without sqlfence; and a holder is paused while another holder takes over.
//
//	go run ./examples/books                        # SQLite in a temporary folder
//	go run ./examples/books -dsn postgres://...    # a schema of its own, dropped at the end
//	go run ./examples/books -dsn mysql://...       # a database of its own, on MySQL or MariaDB; on Vitess an empty keyspace
//
// The program itself is in internal/demo. With an empty build cache, SQLite and the database drivers take some minutes
// to compile. So this program, which compiles in seconds, shows progress, builds internal/demo and runs it with its own
// flags and exit status.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const demo = "github.com/sqlfence/sqlfence/examples/books/internal/demo"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stderr, os.Args[1:])
	stop()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0: // it has said why
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "books:", err)
		os.Exit(1)
	}
}

// run builds and runs the program, and announces the build on w.
func run(ctx context.Context, w io.Writer, args []string) (err error) {
	folder, err := os.MkdirTemp("", "sqlfence-books-build-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	program := filepath.Join(folder, "books.exe") // Windows needs the extension, other systems ignore it

	fmt.Fprintln(w, "Building the example: some minutes the first time, for SQLite and the drivers of all databases, then a second or two.")
	fmt.Fprintln(w, "Then clients change the price of one book, with sqlfence and without it, for a few seconds.")
	done := make(chan struct{})
	go tick(w, done)
	err = command(ctx, "go", "build", "-o", program, demo).Run()
	close(done)
	if err != nil {
		return fmt.Errorf("build: %w", err)
	}
	fmt.Fprintln(w)
	return command(ctx, program, args...).Run()
}

// tick reports every 10 s that the build is still running.
func tick(w io.Writer, done <-chan struct{}) {
	start := time.Now()
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			fmt.Fprintf(w, "  building, for %.0f s\n", time.Since(start).Seconds())
		}
	}
}

// command shares this program's input and output. When ctx ends, the command gets an interrupt, so that it can clean
// up.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
	return cmd
}
