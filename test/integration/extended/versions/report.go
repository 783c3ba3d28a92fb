package main

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
)

// A Result is what became of the tests on one server.
type Result struct {
	Server  string // PostgreSQL, MariaDB or MySQL
	Version string // as it says itself, without what stands behind the number
	Date    string

	Packages map[string]Outcome
}

// An Outcome is that of a package's tests.
type Outcome struct {
	Passed int      // tests and their subtests
	Failed []string `json:",omitempty"` // their names
}

// counts returns how many tests passed, and the names of those that failed, with their packages, but those of what the
// server lacks.
func (r *Result) counts() (passed int, failed []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Packages)) {
		passed += r.Packages[name].Passed
		for _, test := range r.Packages[name].Failed {
			if test = name + " " + test; !lacks(r, test) {
				failed = append(failed, test)
			}
		}
	}
	return passed, failed
}

const resultsFile = "test/integration/extended/versions/results.json"

func readResults(checkout string) (all []Result, err error) {
	text, err := os.ReadFile(filepath.Join(checkout, resultsFile))
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(text, &all)
}

// report runs the tests on the server of the environment, and adds what becomes of each package to the results.
func report(tests string) error {
	r, skip, err := ask()
	if err != nil {
		return err
	}
	fmt.Println(r.Server, r.Version)
	found, err := os.ReadDir(tests)
	if err != nil {
		return err
	}
	failed := 0
	for _, p := range found {
		o := test(p.Name(), filepath.Join(tests, p.Name()), skip)
		failed += len(o.Failed)
		if err := r.add(p.Name(), o); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d tests failed on %s %s", failed, r.Server, r.Version)
	}
	return nil
}

// add adds the outcome of a package to the results of the server.
func (r Result) add(name string, o Outcome) error {
	all, err := readResults(".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.Packages = make(map[string]Outcome)
	for _, before := range all {
		if r.Server == before.Server && r.Version == before.Version {
			r.Packages = before.Packages
		}
	}
	r.Packages[name] = o
	all = slices.DeleteFunc(all, func(other Result) bool {
		return r.Server == other.Server && series(r.Version) == series(other.Version)
	})
	all = append(all, r)
	slices.SortFunc(all, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), compareVersions(a.Version, b.Version))
	})
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(resultsFile, append(text, '\n'), 0o644)
}

// ask queries the server's name and version, and returns the pattern of subtests to skip.
func ask() (r Result, skip string, err error) {
	r.Date = time.Now().Format(time.DateOnly)
	driver, dsn := "pgx", os.Getenv("SQLFENCE_POSTGRES_DSN")
	skip = "/^(mattn|modernc|mysql)"
	if dsn == "" {
		driver, dsn = "mysql", os.Getenv("SQLFENCE_MYSQL_DSN")
		skip = "/^(mattn|modernc|pq|pgx|fencepgx)"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return r, "", err
	}
	defer db.Close()
	var says string
	if err := db.QueryRow("SELECT version()").Scan(&says); err != nil {
		return r, "", err
	}
	r.Version = regexp.MustCompile(`[0-9]+(\.[0-9]+)+`).FindString(says)
	switch {
	case driver == "pgx":
		r.Server = "PostgreSQL"
	case regexp.MustCompile("MariaDB").MatchString(says):
		r.Server = "MariaDB"
	default:
		r.Server = "MySQL"
	}
	return r, skip, nil
}

var outcome = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL): (\S+)`)

// test runs the tests of a package in its folder.
func test(name, program, skip string) (o Outcome) {
	cmd := exec.Command(program, "-test.short", "-test.v", "-test.skip", skip, "-test.timeout", "1h")
	cmd.Dir = filepath.Join("test/integration/promises", name)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	for _, m := range outcome.FindAllSubmatch(out, -1) {
		if string(m[1]) == "PASS" {
			o.Passed++
		} else {
			o.Failed = append(o.Failed, string(m[2]))
		}
	}
	if err != nil && len(o.Failed) == 0 {
		o.Failed = []string{"didn't get to its end"}
	}
	if len(o.Failed) > 0 {
		_, _ = os.Stdout.Write(out)
	}
	fmt.Printf("%-12s %4d passed, %d failed, %s\n", name, o.Passed, len(o.Failed), time.Since(start).Round(time.Second))
	return o
}
