// Package house has tests of the repository's shape: its layers, names, words and links.
package house

import (
	"os"
	"testing"
)

// The tests name files as they stand below the root of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
