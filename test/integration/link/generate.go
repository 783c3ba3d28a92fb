package main

import (
	"fmt"
	"os/exec"
	"strings"
)

func modulePath() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Path}}").Output()
	if err != nil {
		return "", fmt.Errorf("go list -m: %w", err)
	}
	path := strings.TrimSpace(string(out))
	if strings.Contains(path, "\n") { // in a workspace, all of its modules: the first line isn't this one
		out, err = exec.Command("go", "list", "-f", "{{.Module.Path}}", ".").Output()
		if err != nil {
			return "", fmt.Errorf("go list: %w", err)
		}
		path = strings.TrimSpace(string(out))
	}
	return path, nil
}

// list returns the file that lists a folder's tests.
func (f *folder) list() string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\nimport (\n\t\"reflect\"\n\t\"testing\"\n)\n\n", f.pkg)
	b.WriteString("var LinkedTests = []testing.InternalTest{\n")
	for _, name := range f.tests {
		fmt.Fprintf(&b, "\t{Name: %q, F: %s},\n", name, name)
	}
	b.WriteString("}\n\nvar LinkedExamples = []testing.InternalExample{\n")
	for _, e := range f.examples {
		fmt.Fprintf(&b, "\t{Name: %q, F: %s, Output: %q, Unordered: %t},\n", "Example"+e.Name, "Example"+e.Name, e.Output, e.Unordered)
	}
	b.WriteString("}\n\nfunc LinkedMain(m *testing.M) int {\n")
	if f.hasMain {
		b.WriteString("\tTestMain(m)\n")
	} else {
		b.WriteString("\tm.Run()\n")
	}
	// A TestMain may return after m.Run. go test's generated main function also exits with this field.
	b.WriteString("\treturn int(reflect.ValueOf(m).Elem().FieldByName(\"exitCode\").Int())\n}\n")
	return b.String()
}

// program returns the file that runs the tests of one folder.
func program(folders []folder) string {
	var imports, entries strings.Builder
	for i, f := range folders {
		fmt.Fprintf(&imports, "\tf%d %q\n", i, f.importPath)
		fmt.Fprintf(&entries, "\t%q: {f%d.LinkedTests, f%d.LinkedExamples, f%d.LinkedMain},\n", f.name, i, i, i)
	}
	return strings.NewReplacer("IMPORTS\n", imports.String(), "ENTRIES\n", entries.String()).Replace(programText)
}

const programText = `package linked

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

IMPORTS
)

type folder struct {
	tests    []testing.InternalTest
	examples []testing.InternalExample
	main     func(*testing.M) int
}

var folders = map[string]folder{
ENTRIES
}

var chosen folder

var run string // what the command line wants to run

func TestMain(m *testing.M) {
	name := os.Getenv("SQLFENCE_FOLDER")
	var ok bool
	if chosen, ok = folders[name]; !ok {
		fmt.Fprintf(os.Stderr, "SQLFENCE_FOLDER is %q, which isn't one of the folders that this program is linked from\n", name)
		os.Exit(2)
	}
	flag.Parse()
	pattern := flag.Lookup("test.run")
	run = pattern.Value.String()
	if top, _, _ := strings.Cut(run, "/"); strings.Contains(top, "|") && !strings.Contains(top, "(") {
		fmt.Fprintln(os.Stderr, "-test.run: put alternatives in brackets; without them, go test takes each for a pattern of its own")
		os.Exit(2)
	}
	if run != "" {
		if err := pattern.Value.Set("^Test$/" + run); err != nil {
			panic(err)
		}
	}
	os.Exit(chosen.main(m))
}

func Test(t *testing.T) {
	top, _, _ := strings.Cut(run, "/")
	wanted := func(_, name string) (bool, error) { return regexp.MatchString(top, name) }
	any := false
	for _, test := range chosen.tests {
		is, err := wanted("", test.Name)
		if err != nil {
			t.Fatal(err)
		}
		any = any || is
		t.Run(test.Name, test.F)
	}
	for _, example := range chosen.examples {
		is, _ := wanted("", example.Name)
		any = any || is
	}
	if !any {
		t.Fatalf("no test of the folder matches -test.run=%s", run)
	}
	if !testing.RunExamples(wanted, chosen.examples) {
		t.Error("an example failed")
	}
}
`
