package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strconv"
	"strings"
)

// gap stands in a text for a part that isn't constant. The byte behind it is the verb of
// a format, or 's'.
const (
	gap  = '\x00'
	aGap = "\x00s"
)

// A goPackage has what the constants of a folder's files are made of.
type goPackage struct {
	names map[string]ast.Expr // of constants and variables of the package
	files []*goFile
}

type goFile struct {
	name    string
	tree    *ast.File
	imports map[string]string // the folder in the module, by the name in the file
	pkg     *goPackage
}

// goModule has the packages of a module by their folder.
type goModule struct {
	packages map[string]*goPackage
	parts    map[ast.Expr]bool // what is used as a part of a longer text
}

// parseGo reads the Go files. What can't be parsed is left out.
func parseGo(modulePath string, files []file) *goModule {
	m := &goModule{map[string]*goPackage{}, map[ast.Expr]bool{}}
	for _, f := range files {
		if path.Ext(f.name) != ".go" {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), f.name, f.text, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		dir := path.Dir(f.name)
		pkg := m.packages[dir]
		if pkg == nil {
			pkg = &goPackage{names: map[string]ast.Expr{}}
			m.packages[dir] = pkg
		}
		gf := &goFile{f.name, tree, map[string]string{}, pkg}
		pkg.files = append(pkg.files, gf)
		for _, i := range tree.Imports {
			to, _ := strconv.Unquote(i.Path.Value)
			within, ok := strings.CutPrefix(to, modulePath+"/")
			if !ok {
				continue
			}
			name := path.Base(to)
			if i.Name != nil {
				name = i.Name.Name
			}
			gf.imports[name] = within
		}
		for _, d := range tree.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				declare(d, func(name string, value ast.Expr) { pkg.names[name] = value })
			}
		}
	}
	return m
}

func declare(d *ast.GenDecl, note func(name string, value ast.Expr)) {
	for _, spec := range d.Specs {
		if v, ok := spec.(*ast.ValueSpec); ok && len(v.Names) == len(v.Values) {
			for i, name := range v.Names {
				note(name.Name, v.Values[i])
			}
		}
	}
}

// A folder computes texts, with gaps, in one function of a file.
type folder struct {
	module *goModule
	file   *goFile
	locals map[string]ast.Expr // nil for a name that gets several values
	depth  int
}

// fold returns the text of an expression; ok is false if no part of it is known.
func (f *folder) fold(e ast.Expr) (text string, ok bool) {
	if f.depth++; f.depth > 40 {
		f.depth--
		return "", false
	}
	defer func() { f.depth-- }()
	switch e := e.(type) {
	case *ast.BasicLit:
		switch e.Kind {
		case token.STRING:
			text, err := strconv.Unquote(e.Value)
			return strings.ReplaceAll(text, string(rune(gap)), " "), err == nil
		case token.INT:
			return e.Value, true
		}
	case *ast.ParenExpr:
		return f.fold(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return f.concat(e)
		}
	case *ast.Ident:
		return f.name(e.Name)
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return f.imported(x.Name, e.Sel.Name)
		}
	case *ast.CallExpr:
		return f.call(e)
	}
	return "", false
}

// part folds an expression that is a part of a longer text.
func (f *folder) part(e ast.Expr, verb byte) string {
	text, ok := f.fold(e)
	if !ok {
		return string([]byte{gap, verb})
	}
	return text
}

func (f *folder) concat(e *ast.BinaryExpr) (string, bool) {
	left, knowsLeft := f.fold(e.X)
	right, knowsRight := f.fold(e.Y)
	if !knowsLeft {
		left = aGap
	}
	if !knowsRight {
		right = aGap
	}
	return left + right, knowsLeft || knowsRight
}

// name folds what a name in the function or the package stands for.
func (f *folder) name(name string) (string, bool) {
	if value, local := f.locals[name]; local {
		return f.used(value, f)
	}
	return f.used(f.file.pkg.names[name], &folder{f.module, f.file, nil, f.depth})
}

func (f *folder) imported(pkg, name string) (string, bool) {
	p := f.module.packages[f.file.imports[pkg]]
	if f.file.imports[pkg] == "" || p == nil {
		return "", false
	}
	return f.used(p.names[name], &folder{f.module, p.files[0], nil, f.depth})
}

func (f *folder) used(value ast.Expr, in *folder) (string, bool) {
	if value == nil {
		return "", false
	}
	f.module.parts[value] = true
	return in.fold(value)
}

// call folds the functions that put texts together, and conversions.
func (f *folder) call(e *ast.CallExpr) (string, bool) {
	name := ""
	switch fun := e.Fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok {
			name = x.Name + "." + fun.Sel.Name
		}
	}
	switch {
	case name == "fmt.Sprintf" && len(e.Args) > 0:
		format, ok := f.fold(e.Args[0])
		if !ok {
			return "", false
		}
		return f.format(format, e.Args[1:]), true
	case (name == "strings.TrimSpace" || name == "string") && len(e.Args) == 1:
		return f.fold(e.Args[0])
	case name == "strings.Join" && len(e.Args) == 2:
		return f.join(e.Args[0], e.Args[1])
	}
	return "", false
}

func (f *folder) join(list, separator ast.Expr) (string, bool) {
	l, ok := list.(*ast.CompositeLit)
	sep, known := f.fold(separator)
	if !ok || !known {
		return "", false
	}
	var parts []string
	for _, e := range l.Elts {
		parts = append(parts, f.part(e, 's'))
	}
	return strings.Join(parts, sep), len(parts) > 0
}

// format fills a format's verbs with what is known of the arguments.
func (f *folder) format(format string, args []ast.Expr) string {
	var b strings.Builder
	next := 0
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		for i++; i < len(format)-1 && strings.IndexByte("+-# 0123456789.[]", format[i]) >= 0; i++ {
			if format[i] == '[' {
				if end := strings.IndexByte(format[i:], ']'); end > 0 {
					if n, err := strconv.Atoi(format[i+1 : i+end]); err == nil {
						next = n - 1
					}
				}
			}
		}
		if format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		text := string([]byte{gap, format[i]})
		if next >= 0 && next < len(args) {
			text = f.part(args[next], format[i])
		}
		next++
		if format[i] == 'q' && !strings.HasPrefix(text, string(rune(gap))) {
			text = strconv.Quote(text)
		}
		b.WriteString(text)
	}
	return b.String()
}
