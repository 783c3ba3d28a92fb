package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/lease"
)

// A completion returns the possible completions of a word of the command line. A shell shows no error.
type completion = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective)

const (
	completionTime = 2 * time.Second // for the database to answer
	mostCompleted  = 200
)

// first completes only the first argument.
func first(complete completion) completion {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, word)
	}
}

// completeNames completes a word by the names of the ledger.
func (a *app) completeNames(
	cmd *cobra.Command, args []string, word string,
) (found []string, _ cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	_ = a.withLedger(func(l *ledger) error {
		for token, err := range l.List(ctx, word) {
			if err != nil || len(found) == mostCompleted {
				return err
			}
			found = appendWord(found, args, token.Name)
		}
		return nil
	})
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeKeys completes a word by the keys of live leases.
func (a *app) completeKeys(
	cmd *cobra.Command, args []string, word string,
) (found []string, _ cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	_ = a.withLeases(func(leases *lease.Leases) error {
		live, err := leases.List(ctx)
		for _, l := range live {
			if strings.HasPrefix(l.Key, word) && len(found) < mostCompleted {
				found = appendWord(found, args, l.Key)
			}
		}
		return err
	})
	return found, cobra.ShellCompDirectiveNoFileComp
}

// appendWord appends a word to the shell's suggestions, unless the word is already an argument, or has a hidden
// character: a shell takes a tab for the end of the word, and a terminal acts on other hidden characters.
func appendWord(found, args []string, word string) []string {
	if strings.ContainsFunc(word, isHidden) || slices.Contains(args, word) {
		return found
	}
	return append(found, word)
}
