// Package need returns what tests need of the machine: servers and programs. If a server or program is missing, the
// test is skipped, or fails if the environment variable SQLFENCE_REQUIRE names it. Only tests, and packages for tests,
// may import need.
//
// SQLFENCE_REQUIRE is a list of names, separated by blanks, such as "postgres mysql". The name "all" requires
// everything, except the names with a minus before them: "all -tidb".
package need

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Missing skips a test because something is missing, or fails the test if SQLFENCE_REQUIRE requires that name.
func Missing(t testing.TB, name, problem string) {
	t.Helper()
	if required(name, os.Getenv("SQLFENCE_REQUIRE")) {
		t.Fatalf("%s, and SQLFENCE_REQUIRE requires %s", problem, name)
	}
	t.Skip(problem)
}

func required(name, variable string) bool {
	names := strings.Fields(variable)
	return slices.Contains(names, name) || slices.Contains(names, "all") && !slices.Contains(names, "-"+name)
}

// Program returns the path of the first of the programs that is installed. It searches PATH, and the folders of
// programs that only root has on PATH. The first is the name for SQLFENCE_REQUIRE.
func Program(t testing.TB, names ...string) string {
	t.Helper()
	path := Find(names...)
	if path == "" {
		Missing(t, names[0], strings.Join(names, " or ")+" isn't installed")
	}
	return path
}

// Find returns the path that [Program] returns, or an empty string.
func Find(names ...string) (path string) {
	for _, name := range names {
		for _, folder := range []string{"", "/usr/sbin/", "/usr/local/sbin/"} {
			if path, err := exec.LookPath(folder + name); err == nil {
				return path
			}
		}
	}
	return ""
}

// Server returns the value of the variable SQLFENCE_<kind>_DSN, which the command run sets. The name for
// SQLFENCE_REQUIRE is the kind in lower case.
func Server(t testing.TB, kind, run string) (dsn string) {
	t.Helper()
	variable := "SQLFENCE_" + kind + "_DSN"
	dsn = os.Getenv(variable)
	if dsn == "" {
		Missing(t, strings.ToLower(kind), variable+" is not set; run "+run)
	}
	return dsn
}
