// Package pasted compiles the Go code of pages as a reader pastes it.
package pasted

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages has the least number of Go blocks of each page, by its path in the repository.
var pages = map[string]int{
	"README.md":          1,
	"docs/adopting.md":   9,
	"docs/jobs.md":       11,
	"docs/leases.md":     4,
	"docs/operations.md": 1,
	"docs/recipes.md":    18,
	"docs/rowlock.md":    2,
	"docs/which-form.md": 0,
}

// here marks the line of a program that a page's code replaces.
var here = regexp.MustCompile(`(?m)^.*// .*goes here.*\n`)

// A program is what the compiler gets: the program around a page's code, with the code of one of its sections.
type program struct {
	name, text string
}

// TestPastedCodeCompiles compiles the code of each section of a page. The program around the code is a block of the
// page that begins with "package main", or a file of testdata. The section's code replaces the line "goes here", and
// its functions are added at the program's end. A section may have several blocks that open a database. Each of them in
// turn replaces the program's Open, and is compiled with the section's other blocks.
func TestPastedCodeCompiles(t *testing.T) {
	var programs []program
	for page, least := range pages {
		text, err := os.ReadFile(filepath.Join("../../..", page))
		if err != nil {
			t.Fatal(err)
		}
		around, sections, n := split(string(text))
		if n < least {
			t.Errorf("%s has %d blocks of Go", page, n)
		}
		file := "testdata/" + strings.TrimSuffix(filepath.Base(page), ".md") + ".go"
		given, err := os.ReadFile(file)
		switch {
		case err == nil:
			introduced(t, page, string(text), file, given)
			if around != "" {
				around += regexp.MustCompile(`(?s)^.*?\n\)\n`).ReplaceAllString(string(given), "") // without imports
			} else {
				around = string(given)
			}
		case !os.IsNotExist(err):
			t.Fatal(err)
		case around == "" && n > 0:
			t.Errorf("%s has no program around its code", page)
		}
		if around != "" {
			programs = append(programs, program{page, around})
		}
		for _, s := range sections {
			programs = append(programs, s.in(page, around)...)
		}
	}
	compile(t, programs)
}

// A section has the blocks of Go below a heading.
type section struct {
	heading string
	blocks  []string
}

// split returns the program around the code of a page, if the page has it, the sections with other code, and the number
// of all blocks.
func split(page string) (around string, sections []section, n int) {
	fence := regexp.MustCompile("(?ms)^( *)```go\n(.*?)^ *```$")
	heading := regexp.MustCompile(`(?m)^#{1,4} (.*)$`)
	blocks := fence.FindAllStringSubmatchIndex(page, -1)
	for _, b := range blocks {
		code := regexp.MustCompile("(?m)^"+page[b[2]:b[3]]).ReplaceAllString(page[b[4]:b[5]], "")
		if strings.HasPrefix(code, "package main\n") {
			around = code
			continue
		}
		name := ""
		for _, h := range heading.FindAllStringSubmatch(page[:b[0]], -1) {
			name = h[1]
		}
		if len(sections) == 0 || sections[len(sections)-1].heading != name {
			sections = append(sections, section{heading: name})
		}
		last := &sections[len(sections)-1]
		last.blocks = append(last.blocks, code)
	}
	return around, sections, len(blocks)
}

// in returns the programs that a section's code makes of the program around it.
func (s section) in(page, around string) []program {
	name := fmt.Sprintf("%s, %q", page, s.heading)
	opens := regexp.MustCompile(`(?m)^\tdb, err := .*\n\tcheck\(err\)\n`)
	var behind, inside string
	var own []string
	for _, code := range s.blocks {
		indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(code, "\t$1")
		switch {
		case regexp.MustCompile(`^(//.*\n)*(func|type|import) `).MatchString(code):
			behind += "\n" + code
		case opens.MatchString(around) && strings.Contains("\n"+code, "\ndb, err := "):
			own = append(own, indented)
		default:
			inside += indented
		}
	}
	fill := func(text string) program {
		at := here.FindStringIndex(text)
		if at == nil {
			return program{name, text + behind}
		}
		return program{name, text[:at[0]] + inside + text[at[1]:] + behind}
	}
	if own == nil {
		return []program{fill(around)}
	}
	var all []program
	for _, code := range own {
		at := opens.FindStringIndex(around)
		all = append(all, fill(around[:at[0]]+code+around[at[1]:]))
	}
	return all
}

// common has the names that no page explains: those of a call of sql.Open, a context, a test's t, and a writer.
var common = []string{"ctx", "db", "driver", "driverName", "dsn", "t", "w"}

// introduced checks that a page's text mentions each name that the given program declares for the page's code.
func introduced(t *testing.T, page, text, file string, given []byte) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, given, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				continue
			}
			if d.Name.Name != "code" {
				names = append(names, d.Name.Name)
				continue
			}
			for _, p := range d.Type.Params.List {
				for _, n := range p.Names {
					names = append(names, n.Name)
				}
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok {
					for _, n := range v.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	prose := regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(text, "")
	for _, name := range names {
		if !slices.Contains(common, name) && !regexp.MustCompile("`"+name+`\b`).MatchString(prose) {
			t.Errorf("%s doesn't say what %s is, which its code uses", page, name)
		}
	}
}

// known has the packages that a reader's editor imports.
var known = map[string]string{
	"coverage": "github.com/sqlfence/sqlfence/coverage",
	"errors":   "errors",
	"fencepgx": "github.com/sqlfence/sqlfence/fencepgx",
	"lease":    "github.com/sqlfence/sqlfence/lease",
	"log":      "log",
	"otelsql":  "github.com/XSAM/otelsql",
	"pgxpool":  "github.com/jackc/pgx/v5/pgxpool",
	"rowlock":  "github.com/sqlfence/sqlfence/rowlock",
	"sql":      "database/sql",
	"sqlfence": "github.com/sqlfence/sqlfence",
	"stdlib":   "github.com/jackc/pgx/v5/stdlib",
	"testing":  "testing",
	"time":     "time",
	"tokens":   "github.com/sqlfence/sqlfence/tokens",
}

// compile checks the types of programs. Variables may be unused, because readers add code that uses them.
func compile(t *testing.T, programs []program) {
	t.Helper()
	fset := token.NewFileSet()
	files := make(map[string]*ast.File)
	paths := make(map[string]bool)
	for i, p := range programs {
		text := imported(p.text)
		f, err := parser.ParseFile(fset, fmt.Sprint(i, ".go"), text, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v\n%s", p.name, err, text)
			continue
		}
		files[fmt.Sprint(i)] = f
		programs[i].text = text
		for _, spec := range f.Imports {
			paths[strings.Trim(spec.Path.Value, `"`)] = true
		}
	}
	lookup := exported(t, slices.Sorted(maps.Keys(paths)))
	imports := importer.ForCompiler(fset, "gc", lookup)
	for i, p := range programs {
		f, ok := files[fmt.Sprint(i)]
		if !ok {
			continue
		}
		config := types.Config{Importer: imports, Error: func(err error) {
			if text := err.Error(); !strings.Contains(text, "declared and not used") && !strings.Contains(text, "imported and not used") {
				_, at, _ := strings.Cut(text, ".go:")
				t.Errorf("%s, line %s", p.name, at)
			}
		}}
		_, _ = config.Check("main", fset, []*ast.File{f}, nil) // Error has each error
		if t.Failed() && testing.Verbose() {
			t.Logf("%s\n%s", p.name, p.text)
		}
	}
}

// imported adds the imports of known packages that a program uses and lacks, without changing its lines.
func imported(text string) string {
	head := "package main"
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if regexp.MustCompile(`\b`+name+`\.[A-Z]`).MatchString(text) && !strings.Contains(text, "\n\t\""+known[name]+`"`) {
			head += fmt.Sprintf("; import %q", known[name])
		}
	}
	return strings.Replace(text, "package main", head, 1)
}

// exported returns a lookup of the export data of packages and of all that they import.
func exported(t *testing.T, paths []string) importer.Lookup {
	t.Helper()
	var stderr bytes.Buffer
	c := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "--"}, paths...)...)
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	file := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		file[path] = name
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(file[path]) }
}
