// Package cli is the commands of sqlfence, a file a command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
)

// Main runs the command in args, and returns the exit status.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	answers := &stdout{w: out}
	a := &app{in: in, out: answers, errs: database.NewRedactor(errs)}
	a.log = slog.New(slog.NewTextHandler(a.errs, nil))
	relay := newRelay(os.Interrupt, syscall.SIGTERM)
	defer relay.stop()

	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(answers)
	root.SetErr(a.errs)
	command, err := root.ExecuteContextC(relay.ctx)
	a.runs = command.Name() == "run"
	if err != nil && !a.started {
		err = usage(err)
	}
	if !a.runs {
		err = interrupted(relay.ctx, err)
	}
	if answers.err != nil && (err == nil || errors.Is(err, errNo)) {
		err = answers.err
	}
	if text := message(err); text != "" {
		fmt.Fprintf(a.errs, "sqlfence: %s\n", strings.TrimPrefix(text, "sqlfence: "))
	}
	return a.status(err)
}

// app is what all commands have in common.
type app struct {
	in   io.Reader
	out  *stdout
	errs *database.Redactor
	log  *slog.Logger

	json       bool
	dsn        string // the flag's
	dsnFile    string
	schema     string // the schema of sqlfence's own tables
	tables     []string
	tableFiles []string
	dialect    string
	reason     string // for a manual change

	started bool // the command line is understood
	runs    bool // the command is `run`, which exits with the status of the command that it runs
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "sqlfence",
		Short:         "Look after fencing tokens, leases and sealed tables of a database",
		Long:          rootHelp,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	flags := root.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "write JSON, for programs")
	flags.StringVar(&a.dsn, "dsn", "", "data source name of the database, without a password")
	flags.StringVar(&a.dsnFile, "dsn-file", "", "file with the data source name, such as a mounted secret")
	flags.StringVar(&a.schema, "schema", "", "schema of sqlfence's own tables (in MySQL the database), unless the "+
		"session finds them")
	root.MarkFlagsMutuallyExclusive("dsn", "dsn-file")
	root.RegisterFlagCompletionFunc("dsn-file", completeFiles)
	root.AddCommand(
		a.init(), a.migrate(), a.addFence(), a.seal(), a.unseal(), a.verify(), a.statusCommand(),
		a.tokens(), a.leases(), a.watch(), a.explain(), a.run(), a.versionCommand(),
	)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		asGroup(completion)
	}
	a.noteStart(root)
	return root
}

// completeFiles leaves it to the shell to complete a word, by the names of files.
func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: `  sqlfence version`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.write(struct {
				Version string `json:"version"`
			}{version()}, func() { fmt.Fprintln(a.out, "sqlfence", version()) })
		},
	}
}

// noteStart makes each command set started when the command starts: an earlier failure is a mistake in the command
// line. noteStart also completes the help.
func (a *app) noteStart(cmd *cobra.Command) {
	cmd.Long = helpOf(cmd)
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.started = true
			return run(cmd, args)
		}
	}
	for _, c := range cmd.Commands() {
		a.noteStart(c)
	}
}

// group returns a command that has only subcommands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short}
	g.AddCommand(commands...)
	asGroup(g)
	return g
}

func asGroup(g *cobra.Command) {
	g.Args = cobra.ArbitraryArgs
	g.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage(fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath()))
		}
		return usage(fmt.Errorf("%s: say which command; %[1]s -h lists them", cmd.CommandPath()))
	}
}

// interrupted replaces err by the signal that ended ctx, if there was a signal.
func interrupted(ctx context.Context, err error) error {
	var s *signalError
	if err != nil && errors.As(context.Cause(ctx), &s) {
		return s
	}
	return err
}
