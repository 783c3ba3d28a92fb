// Program applications runs the tests of other people's programs through sqlfence. Run it by
//
//	make applications
//
// It fetches them through the Go module proxy into a temporary folder, changes a few lines
// there, and runs their own tests alone, through sqlfence with nothing registered,
// and with their main tables registered: by row and by ledger, with a token that holds
// and with one that another process supersedes after a few writes. It writes
// docs/applications.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

var modes = []string{"alone", "unregistered", "row", "ledger", "stale-row", "stale-ledger"}

func main() {
	only := flag.String("only", "", "run this application only")
	source := flag.String("source", "", "take it from this folder, not from the module proxy; only with -only")
	out := flag.String("out", "", "write the table to this file")
	runs := flag.Int("runs", 3, "times that each of alone, row and ledger is run to measure it")
	keep := flag.Bool("keep", false, "keep the changed programs and what their tests print")
	checkout := flag.String("sqlfence", ".", "a checkout of sqlfence")
	flag.Parse()
	if err := run(*only, *source, *checkout, *out, *runs, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "applications:", err)
		os.Exit(1)
	}
}

func run(only, source, checkout, out string, runs int, keep bool) error {
	checkout, err := filepath.Abs(checkout)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "applications")
	if err != nil {
		return err
	}
	if keep {
		fmt.Println(dir)
	} else {
		defer os.RemoveAll(dir)
	}
	var done []report
	failed := false
	for i := range applications {
		app := &applications[i]
		if only != "" && !strings.EqualFold(only, app.name) {
			continue
		}
		w, err := newWorkspace(app, checkout, filepath.Join(dir, strings.ToLower(app.name)), source)
		if err != nil {
			return fmt.Errorf("%s: %w", app.name, err)
		}
		r, err := w.measure(runs)
		if err != nil {
			return fmt.Errorf("%s: %w", app.name, err)
		}
		failed = r.print(os.Stdout) || failed
		done = append(done, r)
	}
	if out != "" {
		if err := writeTable(out, done); err != nil {
			return err
		}
	}
	if failed {
		return fmt.Errorf("not all is as it should be")
	}
	return nil
}
