// Package coverage tells what becomes of a program's statements: which are guarded, which
// need no guard, which are refused and why. It is for converting a program to sqlfence, and for
// a test that keeps it converted.
//
// A [Collector] is an observer of a fenced database:
//
//	seen := coverage.New()
//	db, err := sqlfence.Open("pgx", dsn, seen.Option(), sqlfence.WithTable("books", sqlfence.InMode(sqlfence.Observe)))
//	// run the program, or its tests
//	seen.Report().WriteText(os.Stdout)
//	err = seen.Report().Check()
//
// It names the tables that the program writes and doesn't register, too.
//
// It tells statements by their fingerprints ([sqlfence.Event.Fingerprint]), which hold no values. Reasons of
// refusals may hold keys of rows.
//
// # What it is not
//
// It sees what has run, and nothing of the statements that haven't. It isn't for
// production under load: each statement is counted under a lock, and with [WithCallers] its stack
// is read.
package coverage
