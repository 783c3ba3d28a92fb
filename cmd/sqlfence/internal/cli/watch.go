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
		Short: "Show the tokens, who holds their leases, who waits, and what is refused, as it changes",
		Long: `Show the newest token of each name, or of NAME, and the holder of its lease; which session has
waited for a name for more than a second, and for which other one; and with --metrics what programs have been refused.

On a terminal it is one page that is drawn again and again, else a line for each of them, and then one for
each change, until it is interrupted. Extensions of a lease are no changes. What lies between two questions
isn't seen.

A refusal happens in the program, and the database keeps none: programs count them by the package fenceotel, and
--metrics is where one of them tells Prometheus, or Prometheus's own /federate.`,
		Example: `  sqlfence watch
  sqlfence watch books --changes 2   # as it is now, and the next change
  sqlfence watch --metrics http://10.0.0.3:9464/metrics \
    --metrics http://10.0.0.4:9464/metrics
  sqlfence watch --metrics \
    'http://prometheus:9090/federate?match[]={__name__=~"sqlfence_.*"}'`,
		Args: cobra.MaximumNArgs(1),
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
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "pause between two questions to the database")
	cmd.Flags().IntVar(&changes, "changes", 0, "end after so many lines; 0 for never")
	cmd.Flags().StringArrayVar(&w.metrics, "metrics", nil,
		"address of a program's metrics for Prometheus, by fenceotel")
	return cmd
}

// errEnough ends a watch that has shown as much as was asked for.
var errEnough = errors.New("enough")

// watchAll asks until ctx ends or enough is shown. The first question has to succeed; what fails later is said, and
// asked again.
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

// checkAddresses refuses what isn't the address of a page.
func checkAddresses(addresses []string) error {
	for _, address := range addresses {
		if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("--metrics: want an address such as http://10.0.0.3:9464/metrics")
		}
	}
	return nil
}
