// Sqlfence looks after what package sqlfence keeps in a database: its tables, tokens and
// leases; and runs commands under a lease. docs/cli.md describes it.
package main

import (
	"os"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
