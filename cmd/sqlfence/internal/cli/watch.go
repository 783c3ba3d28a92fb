package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// A watch asks again and again, and writes what has changed.
type watch struct {
	interval time.Duration
	changes  int
}

func (w *watch) flags(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&w.interval, "interval", time.Second, "pause between two questions to the database")
	cmd.Flags().IntVar(&w.changes, "changes", 0, "end after so many lines; 0 for never")
}

// watchAll asks until ctx ends or the number of changes is reached. What ask returns is compared by
// its keys; show writes one line for a thing that is new or has changed, or gone. The
// first question has to succeed; what fails later is said, and asked again.
func watchAll[T comparable](ctx context.Context, a *app, w watch, ask func(context.Context) (map[string]T, []string, error), show func(thing T, gone bool) error) error {
	if w.interval <= 0 || w.changes < 0 {
		return usage(errors.New("--interval has to be over 0, and --changes 0 or more"))
	}
	var last map[string]T
	var order []string
	lines := 0
	for ; ; rest(ctx, w.interval) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := readerGone(a.out.w); err != nil {
			return err
		}
		found, names, err := ask(ctx)
		switch {
		case err != nil && (last == nil || ctx.Err() != nil):
			return err
		case err != nil:
			fmt.Fprintf(a.errs, "sqlfence: %v\n", err)
			continue
		}
		for _, name := range merged(order, names) {
			was, before := last[name]
			is, now := found[name]
			if before && now && was == is {
				continue
			}
			thing := is
			if !now {
				thing = was
			}
			if err := show(thing, !now); err != nil {
				return err
			}
			if lines++; lines == w.changes {
				return nil
			}
		}
		last, order = found, names
	}
}

// merged returns the names that are gone and then those that are there.
func merged(before, now []string) (names []string) {
	there := make(map[string]bool, len(now))
	for _, n := range now {
		there[n] = true
	}
	for _, n := range before {
		if !there[n] {
			names = append(names, n)
		}
	}
	return append(names, now...)
}

// rest waits, at most until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
