// Package coverage reports which of a program's statements are guarded, need no guard, or are refused, and why. Use it
// while you convert a program to sqlfence, and in a test that fails if a later change adds a write that can't be
// enforced.
//
// A [Collector] is an observer of a fenced database:
//
//	seen := coverage.New()
//	db, err := sqlfence.Open("pgx", dsn, seen.Option(), sqlfence.WithTable("books", sqlfence.InMode(sqlfence.Observe)))
//	// run the program, or its tests
//	seen.Report().WriteText(os.Stdout)
//	err = seen.Report().Check()
//
// The report also names unregistered tables that the program writes.
//
// The report identifies statements by fingerprints ([sqlfence.Event.Fingerprint]), which contain no values. The reasons
// of refusals may contain keys of rows.
//
// # Limits
//
// A Collector sees only statements that have run. Don't use it in production under load: each statement is counted
// under a lock, and [WithCallers] reads the stack of each statement.
package coverage
