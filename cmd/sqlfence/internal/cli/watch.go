package cli

import (
	"context"
	"errors"
	"net/url"
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
		Short: "Show tokens, leases, waiting sessions and refusals as they change",
		Long: `Show the newest token of each name, or of NAME, with the holder of its lease; sessions that have waited
for a name for more than a second, with the session that must end first; and with --metrics the refusals of programs.

On a terminal the command draws one page again and again. Into a file or a pipe, with --json or --changes, it writes a
line for each name, and then a line for each change, until it is interrupted, its pipe has no reader, or --changes
lines are written. Extensions of a lease aren't changes. A change between two queries that is undone isn't seen.

Waiting sessions are known to PostgreSQL and MariaDB, for a role that sees other sessions (pg_read_all_stats;
PROCESS). MySQL 8 and SQLite don't list them.

The database doesn't record refusals. Programs count them with package fenceotel: --metrics is the address at which a
program exports its metrics to Prometheus, or Prometheus's /federate.`,
		Example: `  sqlfence watch
  sqlfence watch books --changes 2   # as it is now, and the next change
  sqlfence watch --metrics http://10.0.0.3:9464/metrics \
    --metrics http://10.0.0.4:9464/metrics
  sqlfence watch --metrics \
    'http://prometheus:9090/federate?match[]={__name__=~"sqlfence_.*"}'`,
		Args: cobra.MaximumNArgs(1),

		ValidArgsFunction: first(a.completeNames),

		RunE: func(cmd *cobra.Command, args []string) error {
			if interval <= 0 || changes < 0 {
				return usage(errors.New("--interval has to be over 0, and --changes 0 or more"))
			}
			if err := checkAddresses(w.metrics); err != nil {
				return usage(err)
			}
			return a.withLedger(func(l *ledger) (err error) {
				if w.leases, err = l.source.Leases(l.db, lease.WithLogger(a.log)); err != nil {
					return err
				}
				w.ledger, w.only = l, args
				if columns, rows := a.screen(); rows > 0 && changes == 0 {
					return a.watchAll(cmd.Context(), w.look, (&page{a, columns, rows, interval}).show, interval)
				}
				return a.watchAll(cmd.Context(), w.look, (&lines{app: a, most: changes}).show, interval)
			})
		},
	}
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "pause between two queries")
	cmd.Flags().IntVar(&changes, "changes", 0, "end after this number of lines; 0 for never")
	cmd.Flags().StringArrayVar(&w.metrics, "metrics", nil,
		"address of a program's metrics for Prometheus, by fenceotel")
	return cmd
}

// errEnough ends a watch that has shown the requested number of lines.
var errEnough = errors.New("enough")

// watchAll repeats the queries until ctx ends or enough is shown. The first round must succeed; a later failure is
// shown, and the next round tries again.
func (a *app) watchAll(
	ctx context.Context, ask func(context.Context) (look, error), show func(look) error, interval time.Duration,
) error {
	var last look
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
			last.unshown = []string{err.Error()}
		default:
			last, first = found, false
		}
		if err := show(last); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func checkAddresses(addresses []string) error {
	for _, address := range addresses {
		if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("--metrics: want an address such as http://10.0.0.3:9464/metrics")
		}
	}
	return nil
}
