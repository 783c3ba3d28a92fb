// Package house has tests of the repository's shape: its layers, names, words and links.
package house

import "testing"

// inRoot has the test name files as they are below the root of the repository. go test notices that one of them has
// changed only if the folder is changed within a test.
func inRoot(t *testing.T) {
	t.Helper()
	t.Chdir("../..")
}
