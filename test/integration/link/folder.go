package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// A folder holds the tests of one subject.
type folder struct {
	name       string // as on the command line
	path       string // absolute
	importPath string
	pkg        string            // the package's name
	files      map[string]string // _test.go files, and the file that each becomes
	tests      []string
	examples   []*doc.Example
	hasMain    bool
}

func readFolders(names []string, race bool) ([]folder, error) {
	module, err := modulePath()
	if err != nil {
		return nil, err
	}
	context := build.Default
	if race {
		context.ToolTags = append(context.ToolTags, "race")
	}
	folders := make([]folder, len(names))
	for i, name := range names {
		f := &folders[i]
		f.name, f.importPath = name, module+"/"+filepath.ToSlash(filepath.Clean(name))
		if f.path, err = filepath.Abs(name); err != nil {
			return nil, err
		}
		if err := f.read(&context); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return folders, nil
}

// read refuses a folder with other Go files: these and the tests would become one package.
func (f *folder) read(context *build.Context) error {
	found, err := context.ImportDir(f.path, 0)
	if _, onlyTests := err.(*build.NoGoError); err != nil && !onlyTests {
		return err
	}
	if len(found.GoFiles)+len(found.CgoFiles)+len(found.TestGoFiles) > 0 {
		return fmt.Errorf("has Go files other than those of package %s_test", filepath.Base(f.path))
	}
	if len(found.XTestGoFiles) == 0 {
		return fmt.Errorf("has no tests")
	}
	f.files = make(map[string]string)
	var parsed []*ast.File
	files := token.NewFileSet()
	for _, name := range found.XTestGoFiles {
		file := filepath.Join(f.path, name)
		f.files[file] = strings.TrimSuffix(file, "_test.go") + ".go"
		tree, err := parser.ParseFile(files, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f.pkg = tree.Name.Name
		if err := f.add(tree); err != nil {
			return err
		}
		parsed = append(parsed, tree)
	}
	for _, e := range doc.Examples(parsed...) {
		if e.Output != "" || e.EmptyOutput { // an example without output is only compiled
			f.examples = append(f.examples, e)
		}
	}
	return nil
}

// add adds the tests of a file. A function that looks like a test but can't be run is an error, so that no test is
// lost.
func (f *folder) add(file *ast.File) error {
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil {
			continue
		}
		name := fn.Name.Name
		switch {
		case strings.HasPrefix(name, "Fuzz"):
			return fmt.Errorf("%s: a linked program runs no fuzz tests", name)
		case !strings.HasPrefix(name, "Test"):
		case name == "TestMain":
			f.hasMain = true
		case parameter(fn) == "T":
			f.tests = append(f.tests, name)
		default:
			return fmt.Errorf("%s: want a function of a *testing.T", name)
		}
	}
	return nil
}

// parameter returns T for a function with one parameter, a *testing.T.
func parameter(fn *ast.FuncDecl) string {
	if fn.Type.Results != nil || fn.Type.Params.NumFields() != 1 {
		return ""
	}
	pointer, ok := fn.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return ""
	}
	selected, ok := pointer.X.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	return selected.Sel.Name
}
