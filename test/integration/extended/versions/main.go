// Program versions runs the tests of sqlfence's promises on server versions other than the system's. Run it by
//
//	make versions
//
// scripts/with-version lists and unpacks the versions. The program compiles the tests once, runs them on one server
// after the other, and writes the results into results.json and docs/data/servers.md. Servers and packages that weren't
// run keep their earlier results.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// packages prove the promises: each of them, on one driver a database.
var packages = []string{"guarantees", "conformance", "concurrency", "ledger", "keys", "serials", "tokens", "lease",
	"sealed", "hold"}

func main() {
	only := flag.String("only", "", "run on these servers only: \"postgresql 13, mysql 9.7\"")
	chosen := flag.String("packages", strings.Join(packages, ","), "test these packages only")
	tests := flag.String("on", "", "with the tests compiled into this folder, on the server of the environment; for the program itself")
	pageOnly := flag.Bool("page", false, "only write the page, by what was found before")
	flag.Parse()
	var err error
	switch {
	case *tests != "":
		err = report(*tests)
	case *pageOnly:
		err = writePage(".")
	default:
		err = run(*only, strings.Split(*chosen, ","))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func run(only string, packages []string) error {
	servers, err := servers(".")
	if err != nil {
		return fmt.Errorf("run it in the checkout's folder: %w", err)
	}
	if only != "" {
		chosen := strings.Split(only, ", ")
		for _, s := range chosen {
			if !slices.Contains(servers, s) {
				return fmt.Errorf("no server %q; there are %s", s, strings.Join(servers, ", "))
			}
		}
		servers = chosen
	}
	dir, err := os.MkdirTemp("", "sqlfence-versions")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, p := range packages {
		if err := command("go", "test", "-C", "test/integration", "-c", "-o", filepath.Join(dir, p), "./promises/"+p).Run(); err != nil {
			return fmt.Errorf("compiling %s: %w", p, err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, v := range []string{"SQLFENCE_POSTGRES_DSN", "SQLFENCE_MYSQL_DSN"} { // of other servers
		if err := os.Unsetenv(v); err != nil {
			return err
		}
	}
	var failed []error
	for _, s := range servers {
		name, version, _ := strings.Cut(s, " ")
		if err := command("scripts/with-version", name, version, self, "-on", dir).Run(); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s, err))
		}
	}
	return errors.Join(append(failed, writePage("."))...)
}

// servers are those that there are, by scripts/with-version.
func servers(checkout string) ([]string, error) {
	list, err := exec.Command(filepath.Join(checkout, "scripts/with-version"), "-list").Output()
	return strings.Split(strings.TrimSpace(string(list)), "\n"), err
}

// command is a command with this program's output.
func command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}
