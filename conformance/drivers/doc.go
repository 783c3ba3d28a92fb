// Package drivers tests sqlfence around real database drivers. It is a module
// of its own, so that the drivers' versions never reach a user's build, and it
// has nothing to import.
package drivers

import (
	// Wrappers that tests put around or beneath sqlfence. Named here, in the one
	// place that no test file can lose, so that go.mod keeps them.
	_ "github.com/DATA-DOG/go-sqlmock"
	_ "github.com/XSAM/otelsql"
)
