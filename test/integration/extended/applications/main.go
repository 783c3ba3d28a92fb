// Program applications runs the tests of other people's programs through sqlfence. Run it by
//
//	make applications
//
// It fetches them through the Go module proxy into a temporary folder, changes a few lines
// there, and runs their own tests alone, through sqlfence with nothing registered,
// and with their main tables registered: by row and by ledger, with a token that holds
// and with one that another process supersedes after a few writes. It writes
// docs/data/applications.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

var modes = []string{"alone", "unregistered", "row", "ledger", "stale-row", "stale-ledger"}

func main() {
	only := flag.String("only", "", "run this application only")
	source := flag.String("source", "", "take it from this folder, not from the module proxy; only with -only")
	out := flag.String("out", "", "write the table to this file")
	runs := flag.Int("runs", 3, "times that each way but the superseded ones is run to measure it")
	keep := flag.Bool("keep", false, "keep the changed programs and what their tests print")
	parallel := flag.Int("parallel", 1, "how many applications are run at once")
	checkout := flag.String("sqlfence", ".", "a checkout of sqlfence")
	flag.Parse()
	if err := run(*only, *source, *checkout, *out, *runs, *parallel, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "applications:", err)
		os.Exit(1)
	}
}

func run(only, source, checkout, out string, runs, parallel int, keep bool) error {
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
	var chosen []*workspace
	for i := range applications {
		if app := &applications[i]; only == "" || strings.EqualFold(only, app.name) {
			chosen = append(chosen, &workspace{app: app, checkout: checkout, dir: filepath.Join(dir, strings.ToLower(app.name))})
		}
	}
	done, errs := make([]report, len(chosen)), make([]error, len(chosen))
	var running sync.WaitGroup
	places := make(chan struct{}, max(1, parallel))
	for i, w := range chosen {
		running.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if done[i], errs[i] = w.measure(source, runs); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", w.app.name, errs[i])
			}
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	failed := false
	for _, r := range done {
		failed = r.print(os.Stdout) || failed
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
