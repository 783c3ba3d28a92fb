package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/poll"
	"github.com/sqlfence/sqlfence/lease"
)

func (a *app) watch() *cobra.Command {
	var interval time.Duration
	var changes int
	cmd := &cobra.Command{
		Use:   "watch [NAME]",
		Short: "Write the tokens and who holds their leases, and then each change, a line each",
		Long: `Write the newest token of each name, or of NAME, and the holder of its lease; and then a
line whenever the token or the holder has changed, until it is interrupted. Extensions of a lease are
no changes. What lies between two questions isn't seen.`,
		Example: `  sqlfence watch
  sqlfence watch books --changes 2   # as it is now, and the next change`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if interval <= 0 || changes < 0 {
				return usage(errors.New("--interval has to be over 0, and --changes 0 or more"))
			}
			return a.withLedger(func(l *ledger) error {
				leases, err := l.source.Leases(l.db, lease.WithLogger(a.log))
				if err != nil {
					return err
				}
				said := false
				ask := func(ctx context.Context) ([]watched, error) {
					found, unread, err := l.watch(ctx, leases)
					if unread != nil && !said {
						fmt.Fprintf(a.errs, "sqlfence: leases aren't shown: %v\n", unread)
					}
					said = unread != nil
					return slices.DeleteFunc(found,
						func(w watched) bool { return len(args) > 0 && w.Name != args[0] }), err
				}
				return a.watchAll(cmd.Context(), ask, interval, changes)
			})
		},
	}
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "pause between two questions to the database")
	cmd.Flags().IntVar(&changes, "changes", 0, "end after so many lines; 0 for never")
	return cmd
}

// A watched name has its newest token and its lease, without what changes while that is held.
type watched struct {
	tokenRow
	Lease      string `json:"lease,omitempty"` // held or none; empty if no leases are kept
	Holder     string `json:"holder,omitempty"`
	AcquiredAt string `json:"acquired_at,omitempty"`
}

// watch returns the names in their order, and why they come without their leases, if these are not set up for
// the one who asks.
func (l *ledger) watch(ctx context.Context, leases *lease.Leases) (all []watched, unread, err error) {
	var names []tokenRow
	for token, err := range l.List(ctx, "") {
		if err != nil {
			return nil, nil, err
		}
		names = append(names, newTokenRow(token))
	}
	held, err := leases.List(ctx)
	if errors.Is(err, sqlfence.ErrNotSetUp) {
		return withLeases(names, nil, ""), err, nil
	}
	return withLeases(names, held, "none"), nil, err
}

// withLeases adds to each name its lease, or what is said of a name without one. A lease has an older token
// than its name if a later one was issued without a lease, and a newer one if it was read later.
func withLeases(names []tokenRow, held []lease.Info, none string) []watched {
	byKey := make(map[string]lease.Info, len(held))
	for _, h := range held {
		byKey[h.Key] = h
	}
	all := make([]watched, len(names))
	for i, name := range names {
		all[i] = watched{tokenRow: name, Lease: none}
		if h, ok := byKey[name.Name]; ok {
			h.Token.Value = max(h.Token.Value, name.Value)
			all[i] = watched{newTokenRow(h.Token), "held", h.Holder, moment(h.AcquiredAt)}
		}
	}
	return all
}

// watchAll asks until ctx ends or the number of lines is reached, and writes a line for a name that is
// gone, new, or has changed. The first question has to succeed; what fails later is said, and
// asked again.
func (a *app) watchAll(
	ctx context.Context, ask func(context.Context) ([]watched, error), interval time.Duration, changes int,
) error {
	var last []watched
	lines := 0
	for first := true; ; poll.Rest(ctx, interval) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := readerGone(a.out.w); err != nil {
			return err
		}
		found, err := ask(ctx)
		switch {
		case err != nil && (first || ctx.Err() != nil):
			return err
		case err != nil:
			fmt.Fprintf(a.errs, "sqlfence: %v\n", err)
			continue
		}
		for _, line := range changed(last, found) {
			if err := a.showNews(line); err != nil {
				return err
			}
			if lines++; lines == changes {
				return nil
			}
		}
		last, first = found, false
	}
}

// News are what a line says.
type news struct {
	At string `json:"at"`
	watched
	Gone bool `json:"gone"`
}

// changed returns the names that are gone and then those that are new or have changed.
func changed(before, now []watched) (lines []news) {
	at := moment(time.Now())
	there := make(map[string]bool, len(now))
	for _, w := range now {
		there[w.Name] = true
	}
	known := make(map[watched]bool, len(before))
	for _, w := range before {
		known[w] = true
		if !there[w.Name] {
			lines = append(lines, news{at, w, true})
		}
	}
	for _, w := range now {
		if !known[w] {
			lines = append(lines, news{at, w, false})
		}
	}
	return lines
}

func (a *app) showNews(n news) error {
	return a.write(n, func() {
		text := strconv.FormatInt(n.Value, 10)
		switch {
		case n.Gone:
			text = "gone"
		case n.Lease == "held":
			text += fmt.Sprintf("  held by %s since %s", visible(n.Holder), n.AcquiredAt)
		case n.Lease == "none":
			text += "  no lease"
		}
		fmt.Fprintf(a.out, "%s  %s  %s\n", n.At, visible(n.Name), text)
	})
}
