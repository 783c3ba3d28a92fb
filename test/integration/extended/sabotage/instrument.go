package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A site is a place of the reader that can be disabled.
type site struct {
	N         int // the number that selects the site
	Kind      kind
	Package   string
	File      string
	Line, Col int
	Text      string // the SQL keyword or the condition
}

// A kind says how a site is disabled.
type kind string

const (
	keyword   kind = "keyword"   // the reader compares with text that no statement has
	condition kind = "condition" // the condition is false
)

func (s site) key() string {
	return fmt.Sprintf("%s/%s:%d:%d %s %s", s.Package, s.File, s.Line, s.Col, s.Kind, s.Text)
}

// packages are the instrumented packages.
var packages = suites[:2]

// added is the file that is added to each instrumented package. The variable SABOTAGE is the number of the disabled site.
// If SABOTAGE_RECORD is set, a site records that it has an effect: its keyword is evaluated, or its condition is true.
// The test programs that don't reach a site needn't run for this site. TakeSites returns the sites that were recorded
// since its last call; at the end of a test program, the file that SABOTAGE_RECORD names has all of them.
const added = `package %s

import ("fmt"; "os"; "strconv")

var sabotaged, _ = strconv.Atoi(os.Getenv("SABOTAGE"))
var record = os.Getenv("SABOTAGE_RECORD")
var recorded, written [1<<12]bool
var taken []int

func Sabotage(n int) { sabotaged = n }
func SabotagedSite() int { return sabotaged }

func TakeSites(more []int) []int {
	for _, n := range taken { recorded[n] = false }
	more = append(more, taken...)
	taken = taken[:0]
	return more
}

func recordSite(n int) {
	if recorded[n] { return }
	recorded[n] = true
	taken = append(taken, n)
	if record != "-" && !written[n] {
		written[n] = true
		f, err := os.OpenFile(record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil { panic(err) }
		fmt.Fprintln(f, n)
		f.Close()
	}
}

func sabotagedWord(n int, word string) string {
	if record != "" { recordSite(n) }
	if n == sabotaged { return "\x01sabotaged" }
	return word
}

func sabotagedIf[B ~bool](n int, condition B) B {
	if bool(condition) && record != "" { recordSite(n) }
	return condition && n != sabotaged
}
`

//go:embed testdata/plans_test.go
var plansTestFile []byte

// build instruments the packages and compiles the test programs into the folder work. skipped is the number of places
// that can't be instrumented. With sitesOnly it compiles nothing, and skips the places of the last build.
func build(work string, sitesOnly bool) (sites []site, skipped int, err error) {
	skippedFile := filepath.Join(work, "skipped.json")
	skip := make(map[string]bool)
	if text, err := os.ReadFile(skippedFile); err == nil {
		if err := json.Unmarshal(text, &skip); err != nil {
			return nil, 0, err
		}
	}
	for range 5 {
		if sites, skipped, err = instrument(work, skip); err != nil || sitesOnly {
			return sites, skipped, err
		}
		failed := false
		for _, s := range suites {
			out, err := exec.Command("go", "test", "-c", "-gcflags=-e", "-overlay", filepath.Join(work, "overlay.json"),
				"-o", filepath.Join(work, s.name+".test"), "./"+s.folder).CombinedOutput()
			if err == nil {
				continue
			}
			places := regexp.MustCompile(`(\w+)/(\w+\.go:\d+):\d+: `).FindAllStringSubmatch(string(out), -1)
			if len(places) == 0 {
				return nil, 0, fmt.Errorf("compiling %s: %w\n%s", s.name, err, out)
			}
			for _, m := range places {
				skip[m[1]+"/"+m[2]] = true
			}
			failed = true
			break
		}
		if !failed {
			text, _ := json.Marshal(skip)
			return sites, skipped, os.WriteFile(skippedFile, text, 0o644)
		}
	}
	return nil, 0, fmt.Errorf("the instrumented packages don't compile: %v", skip)
}

// instrument writes the instrumented files and the overlay. It leaves out the lines in skip.
func instrument(work string, skip map[string]bool) (sites []site, skipped int, err error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, 0, err
	}
	replace := make(map[string]string)
	put := func(folder, file string, text []byte) error {
		to := filepath.Join(work, folder, file)
		replace[filepath.Join(root, folder, file)] = to
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o644)
	}
	for _, p := range packages {
		files, err := filepath.Glob(filepath.Join(p.folder, "*.go"))
		if err != nil || len(files) == 0 {
			return nil, 0, fmt.Errorf("no files in %s; run it in the root of the repository: %w", p.folder, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			src, err := os.ReadFile(file)
			if err != nil {
				return nil, 0, err
			}
			found, err := find(p.name, filepath.Base(file), src)
			if err != nil {
				return nil, 0, err
			}
			var edits []edit
			for _, f := range found {
				if skip[fmt.Sprintf("%s/%s:%d", p.name, f.File, f.Line)] {
					skipped++
					continue
				}
				f.N = len(sites) + 1
				sites = append(sites, f.site)
				name := map[kind]string{keyword: "sabotagedWord", condition: "sabotagedIf"}[f.Kind]
				edits = append(edits, edit{f.from, fmt.Sprintf("%s(%d, ", name, f.N)}, edit{f.to, ")"})
			}
			if err := put(p.folder, filepath.Base(file), applied(src, edits)); err != nil {
				return nil, 0, err
			}
		}
		if err := put(p.folder, "sabotage.go", fmt.Appendf(nil, added, p.name)); err != nil {
			return nil, 0, err
		}
	}
	if err := put("rewrite", "sabotage_test.go", plansTestFile); err != nil {
		return nil, 0, err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, 0, err
	}
	return sites, skipped, os.WriteFile(filepath.Join(work, "overlay.json"), text, 0o644)
}

// A place is a site with its range of bytes in the file.
type place struct {
	site
	from, to int
}

var isKeyword = regexp.MustCompile(`^"[a-z_]+"$`)

// find returns the places of a file that can be disabled.
func find(pkg, file string, src []byte) (found []place, err error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, src, 0)
	if err != nil {
		return nil, err
	}
	add := func(k kind, n ast.Node) {
		at, to := set.Position(n.Pos()), set.Position(n.End()).Offset
		text := strings.Join(strings.Fields(string(src[at.Offset:to])), " ")
		found = append(found, place{site{0, k, pkg, file, at.Line, at.Column, text}, at.Offset, to})
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.CONST && n.Tok != token.IMPORT
		case *ast.StructType:
			return false // its strings are tags
		case *ast.BasicLit:
			if n.Kind == token.STRING && isKeyword.MatchString(n.Value) {
				add(keyword, n)
			}
		case *ast.IfStmt:
			add(condition, n.Cond)
		case *ast.SwitchStmt:
			if n.Tag == nil {
				for _, clause := range n.Body.List {
					for _, c := range clause.(*ast.CaseClause).List {
						add(condition, c)
					}
				}
			}
		}
		return true
	})
	// The call of an outer place must begin before the calls inside.
	slices.SortStableFunc(found, func(a, b place) int { return a.from - b.from })
	return found, nil
}

// An edit inserts text at an offset.
type edit struct {
	at   int
	text string
}

func applied(src []byte, edits []edit) (out []byte) {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at - b.at })
	last := 0
	for _, e := range edits {
		out = append(append(out, src[last:e.at]...), e.text...)
		last = e.at
	}
	return append(out, src[last:]...)
}
