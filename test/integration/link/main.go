// Command link builds one test program from the tests of several folders.
//
// Usage, in the folder of the module:
//
//	go run ./link -o PROGRAM [-race] FOLDER...
//
// Each folder keeps its tests in _test.go files, so that go test runs them alone. Linking a test program takes longer
// than most folders' tests, because each program contains all database drivers. For PROGRAM the go command reads the
// folders through an overlay (go help build, -overlay): a folder's _test.go files become a package, and a generated
// file lists the tests of that package.
//
// PROGRAM runs the tests of the folder that the environment variable SQLFENCE_FOLDER names, by its TestMain, and must
// be started in that folder. Every test is a subtest of Test: TestCounter is Test/TestCounter. The flags are those of
// a test program. A -test.run pattern is matched below Test, so that it is the same pattern as for go test.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	program := flag.String("o", "", "where the program is written")
	race := flag.Bool("race", false, "build with the race detector")
	flag.Parse()
	if err := link(*program, *race, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "link:", err)
		os.Exit(1)
	}
}

func link(program string, race bool, names []string) error {
	if program == "" || len(names) == 0 {
		return errors.New("usage: link -o PROGRAM [-race] FOLDERS")
	}
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	folders, err := readFolders(names, race)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "sqlfence-link")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	overlay, err := writeOverlay(temp, folders)
	if err != nil {
		return err
	}
	// Without symbol tables (-s -w) the linker takes half of the time. A panic still prints its functions and lines.
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay=" + overlay, "-o", program}
	if race {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "./"+linkedFolder)...)
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	return build.Run()
}

// linkedFolder exists in the overlay only.
const linkedFolder = "linked"

// writeOverlay writes the generated files, and the overlay, to the folder temp, and returns the path of the overlay.
func writeOverlay(temp string, folders []folder) (path string, err error) {
	replace := make(map[string]string)
	generate := func(place, source string) error {
		file := filepath.Join(temp, fmt.Sprintf("%d.go", len(replace)))
		replace[place] = file
		return os.WriteFile(file, []byte(source), 0o600)
	}
	for _, f := range folders {
		for test, file := range f.files {
			replace[test], replace[file] = "", test
		}
		if err := generate(filepath.Join(f.path, "linked_tests.go"), f.list()); err != nil {
			return "", err
		}
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if err := generate(filepath.Join(here, linkedFolder, "linked_test.go"), program(folders)); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(temp, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}
