package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/child"
	"github.com/sqlfence/sqlfence/lease"
)

const tokenVariable = "SQLFENCE_TOKEN"

// A job is a command that runs as long as a lease is held.
type job struct {
	key     string
	command []string

	ttl, wait, grace time.Duration
	heartbeat        time.Duration // 0: the default
	holder, resume   string
}

func (a *app) run() *cobra.Command {
	var j job
	cmd := &cobra.Command{
		Use:   "run KEY [flags] -- COMMAND [ARG]…",
		Short: "Run a command that holds a lease",
		Long: `Take the lease of KEY and run a command, with the lease's token in the environment variable
` + tokenVariable + `, such as books:000000000000042. The lease is extended while the command runs, and released
after its end. The command has the environment of this program, including SQLFENCE_DSN; --dsn-file keeps the data
source name out of it.

If the lease is lost, or the database can't be reached, the command and the processes that it started get SIGTERM,
and after --grace SIGKILL. For this program the lease ends earlier than for others, by --grace. That depends on
clocks: only the token protects the data. On Windows the command is killed after --grace.

The signals INT, TERM, HUP, QUIT, USR1 and USR2 are passed on to the command and the processes that it started. While
this program waits for the lease, the signals end this program. On a terminal the command shares the process group of
this program: it reads from the terminal, Ctrl-C and Ctrl-Z reach every program of a pipe, INT and QUIT aren't passed
on, and other signals go to the command alone, or to the group that it has created. While Ctrl-Z has stopped this
program, the lease isn't extended.

On Linux the processes that it started include daemons, jobs of set -m and children of setsid, but not services that
run on its behalf (systemd-run, docker, at). On other systems they are the process group, and on a terminal the
command alone: let a script exec its last program, or redirect its input from /dev/null. Background processes that
outlive the command aren't watched.

If this program is killed by SIGKILL, Linux kills the command, but not the processes that it started; other systems
kill neither. The lease ends after --ttl, and the token refuses later writes. A container or systemd-run --scope ends
all of them.

The status is the status of the command, or 128 + n if the signal n has ended it. It is 75 if another holder has the
lease, 76 if the lease was lost, 125 if this program has failed, 126 if the command can't be executed, and 127 if the
command can't be found.`,
		Example: `  sqlfence run nightly-report -- ./report.sh
  sqlfence run books --wait 1m --ttl 20s -- python3 prices.py`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return errors.New("want a key, two dashes, and a command: sqlfence run KEY -- COMMAND")
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return a.completeKeys(cmd, args, word)
			}
			return completeFiles(cmd, args, word)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			j.key, j.command = args[0], args[1:]
			return a.runJob(&j)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&j.ttl, "ttl", lease.DefaultTTL, "how long the lease lives without an extension")
	flags.DurationVar(&j.heartbeat, "heartbeat", 0, "how often the lease is extended, and its loss noticed "+
		"(default a third of --ttl without --grace)")
	flags.DurationVar(&j.wait, "wait", 0, "how long to wait for the lease; 0 is one attempt")
	flags.DurationVar(&j.grace, "grace", 10*time.Second, "time for the command to end; less than --ttl")
	flags.StringVar(&j.holder, "holder", "", "the holder's name for others to see; it gives no right (default "+
		"host/pid/random)")
	flags.StringVar(&j.resume, "resume", "", "take the live lease of this id again, with the same token; two commands "+
		"that run at the same time must not have the same id")
	cmd.MarkFlagsMutuallyExclusive("holder", "resume") // other processes see the id as the holder
	return cmd
}

func (a *app) runJob(j *job) error {
	if j.grace <= 0 || j.grace >= j.ttl {
		return fmt.Errorf("--grace is %v, want more than 0 and less than --ttl, which is %v", j.grace, j.ttl)
	}
	path, err := exec.LookPath(j.command[0])
	if err != nil {
		return notRun(err)
	}
	return a.withLeases(func(leases *lease.Leases) error {
		relay := newRelay(child.Signals...)
		defer relay.stop()
		var result error
		err := leases.Do(relay.ctx, j.key, func(ctx context.Context) error {
			result = a.supervise(ctx, j, path, relay)
			return result
		}, j.terms()...)
		var lost *lease.LostError
		switch {
		case errors.As(result, new(*reportedError)):
			return result
		case errors.As(err, &lost):
			return lost // whatever status the command had
		case result != nil:
			return result
		}
		return interrupted(relay.ctx, err)
	})
}

// terms returns the terms of the lease. With the [lease.Margin] of j.grace, this process considers the lease ended
// j.grace before other processes can take it, and ends the command in this time.
func (j *job) terms() []lease.Term {
	terms := []lease.Term{lease.TTL(j.ttl), lease.Margin(j.grace)}
	if j.wait == 0 {
		terms = append(terms, lease.NoWait())
	} else {
		terms = append(terms, lease.Timeout(j.wait), lease.Interval(pause(j.wait)))
	}
	if j.holder != "" {
		terms = append(terms, lease.Holder(j.holder))
	}
	if j.resume != "" {
		terms = append(terms, lease.Resume(j.resume))
	}
	if j.heartbeat != 0 {
		terms = append(terms, lease.Heartbeat(j.heartbeat))
	}
	return terms
}

func pause(wait time.Duration) time.Duration { return max(time.Millisecond, min(wait/10, time.Second)) }

// supervise runs the command until the command ends or the lease is lost, which ends ctx. The error has the command's
// status. After a loss it reports the loss at once, then ends the command within j.grace, and returns the loss.
func (a *app) supervise(ctx context.Context, j *job, path string, relay *relay) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	key, _ := lease.NormalizeKey(j.key) // it has been taken
	token, _ := sqlfence.FenceFrom(ctx, key)
	cmd := exec.Command(path, j.command[1:]...)
	cmd.Args[0] = j.command[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), tokenVariable+"="+token.String())
	c, err := relay.start(func() (*child.Child, error) {
		return child.Start(cmd, term.IsTerminal(int(os.Stdin.Fd())) || child.InForeground())
	})
	if err != nil {
		return notRun(err)
	}
	select {
	case <-c.Ended():
	case <-ctx.Done():
		lost := context.Cause(ctx)
		fmt.Fprintf(a.errs, "sqlfence: ending the command: %s\n", message(lost))
		c.End(j.grace)
		return &reportedError{lost}
	}
	status, err := c.Status()
	if err != nil {
		return err
	}
	return &exitError{status: status}
}
