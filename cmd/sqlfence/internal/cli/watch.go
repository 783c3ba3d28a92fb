package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/internal/poll"
	"github.com/sqlfence/sqlfence/lease"
)

func (a *app) watch() *cobra.Command {
	var w watcher
	var interval time.Duration
	var changes int
	cmd := &cobra.Command{
		Use:   "watch [NAME]",
		Short: "Show tokens, leases and waiting sessions as they change",
		Long: `Show the newest token of each name, or of NAME, with the holder of its lease; and sessions that have
waited for a name for more than a second, with the session that must end first.

The command writes a line for each name, and then a line for each change, until it is interrupted or --changes lines
are written. Extensions of a lease aren't changes. A change between two queries that is undone isn't seen.

Waiting sessions are known to PostgreSQL and MariaDB, for a role that sees other sessions (pg_read_all_stats;
PROCESS). MySQL 8 and SQLite don't list them.`,
		Example: `  sqlfence watch
  sqlfence watch books --changes 2   # as it is now, and the next change`,
		Args: cobra.MaximumNArgs(1),

		ValidArgsFunction: first(a.completeNames),

		RunE: func(cmd *cobra.Command, args []string) error {
			if interval <= 0 || changes < 0 {
				return usage(errors.New("--interval has to be over 0, and --changes 0 or more"))
			}
			return a.withLedger(func(l *ledger) (err error) {
				if w.leases, err = l.source.Leases(l.db, lease.WithLogger(a.log)); err != nil {
					return err
				}
				w.ledger, w.only = l, args
				return w.watchAll(cmd.Context(), &lines{app: a, most: changes}, interval)
			})
		},
	}
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "pause between two queries")
	cmd.Flags().IntVar(&changes, "changes", 0, "end after this number of lines; 0 for never")
	return cmd
}

// errEnough ends a watch that has shown the requested number of lines.
var errEnough = errors.New("enough")

// watchAll repeats the queries until ctx ends or l has shown as many lines as --changes allows. If the first round
// fails, it returns the error; a later failure is shown, and the next round tries again.
func (w *watcher) watchAll(ctx context.Context, l *lines, interval time.Duration) error {
	var last look
	for first := true; ; poll.Rest(ctx, interval) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		found, err := w.look(ctx)
		switch {
		case err != nil && (first || ctx.Err() != nil):
			return err
		case err != nil:
			last.unshown = []string{err.Error()}
		default:
			last, first = found, false
		}
		if err := l.show(last); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
