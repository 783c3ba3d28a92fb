// Sqlfence creates, shows and repairs sqlfence's tables, tokens and leases in a database, checks registered tables, and
// runs commands that hold a lease. docs/cli.md describes it.
package main

import (
	"os"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
