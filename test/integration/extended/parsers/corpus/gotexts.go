package main

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// A text is a candidate for a statement, with where it was found.
type text struct {
	sql   string
	file  string
	names []string // of the declarations around it
	built bool     // the program appends to it
	loose bool     // nothing shows that the program sends it
}

// texts returns the texts of all files that begin as SQL does: the longest that can be
// computed, no parts of others.
func (m *goModule) texts() (found []text) {
	roots := map[ast.Expr]text{}
	var order []ast.Expr
	for _, dir := range slices.Sorted(maps.Keys(m.packages)) {
		for _, file := range m.packages[dir].files {
			for _, d := range file.tree.Decls {
				w := &walker{folder: &folder{module: m, file: file}, appended: map[ast.Expr]bool{}}
				if fn, ok := d.(*ast.FuncDecl); ok {
					w.names = append(w.names, fn.Name.Name, receiver(fn))
					w.function(fn)
				}
				w.note = func(e ast.Expr, t text) {
					roots[e] = t
					order = append(order, e)
				}
				ast.Walk(w, d)
			}
		}
	}
	for _, e := range order {
		if !m.parts[e] {
			found = append(found, roots[e])
		}
	}
	return found
}

// A walker goes through a declaration and notes the texts.
type walker struct {
	*folder
	names    []string
	appended map[ast.Expr]bool // the first values of variables that more is appended to
	note     func(ast.Expr, text)
}

// function notes what the function's variables are set to.
func (w *walker) function(fn *ast.FuncDecl) {
	values := map[string][]ast.Expr{}
	grows := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			declare(n, func(name string, value ast.Expr) { values[name] = append(values[name], value) })
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				name, ok := to.(*ast.Ident)
				if !ok {
					continue
				}
				grows[name.Name] = grows[name.Name] || n.Tok == token.ADD_ASSIGN
				var value ast.Expr
				if len(n.Lhs) == len(n.Rhs) {
					value = n.Rhs[i]
				}
				values[name.Name] = append(values[name.Name], value)
				grows[name.Name] = grows[name.Name] || n.Tok == token.ASSIGN && appendsTo(value, name.Name)
			}
		case *ast.Field:
			for _, name := range n.Names {
				values[name.Name] = append(values[name.Name], nil)
			}
		}
		return true
	})
	w.locals = map[string]ast.Expr{}
	for name, all := range values {
		w.locals[name] = nil
		if len(all) == 1 && !grows[name] {
			w.locals[name] = all[0]
		}
		for _, value := range all {
			w.appended[value] = grows[name]
		}
	}
}

// receiver returns the name of the type whose method it is, or "".
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	name, _ := t.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

// appendsTo reports whether the expression begins with the variable.
func appendsTo(e ast.Expr, name string) bool {
	for {
		b, ok := e.(*ast.BinaryExpr)
		if !ok {
			break
		}
		e = b.X
	}
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// Visit implements [ast.Visitor].
func (w *walker) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.ImportSpec, *ast.StructType:
		return nil
	case *ast.ValueSpec:
		names := append([]string{}, w.names...)
		for _, name := range n.Names {
			names = append(names, name.Name)
		}
		inner := *w
		inner.names = names
		return &inner
	case *ast.CallExpr:
		if isMessage(n) {
			return nil
		}
		return w.expression(n)
	case *ast.BasicLit:
		return w.expression(n)
	case *ast.BinaryExpr:
		return w.expression(n)
	}
	return w
}

func (w *walker) expression(e ast.Expr) ast.Visitor {
	sql, ok := w.fold(e)
	if !ok || !beginsAsSQL(sql) {
		return w
	}
	w.note(e, text{sql: sql, file: w.file.name, names: w.names, built: w.appended[e]})
	return nil
}

// isMessage holds for a call whose texts are for people.
func isMessage(c *ast.CallExpr) bool {
	name := ""
	switch fun := c.Fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		name = fun.Sel.Name
		if x, ok := fun.X.(*ast.Ident); ok && (x.Name == "errors" || x.Name == "log" || x.Name == "slog") {
			return true
		}
	}
	for _, end := range []string{"Errorf", "Infof", "Debugf", "Warnf", "Fatalf", "Panicf", "Printf", "Println", "Errorw", "Wrapf", "panic", "Info", "Debug", "Warn", "Error"} {
		if name == end {
			return true
		}
	}
	return false
}

// beginsAsSQL reports whether a write may begin so.
func beginsAsSQL(s string) bool {
	if len(s) < 12 || len(s) > 100_000 {
		return false
	}
	first := strings.ToLower(firstWord(s))
	switch first {
	case "insert", "update", "delete", "replace", "merge", "with", "begin", "set", "select", "do", "explain", "lock", "truncate", "copy":
		return true
	}
	return false
}

// firstWord returns the first word behind comments and brackets.
func firstWord(s string) string {
	for {
		s = strings.TrimLeft(s, " \t\r\n(;")
		switch {
		case strings.HasPrefix(s, "--"):
			_, s, _ = strings.Cut(s, "\n")
		case strings.HasPrefix(s, "/*"):
			_, s, _ = strings.Cut(s, "*/")
		default:
			for i := range len(s) {
				if c := s[i] | 0x20; c < 'a' || c > 'z' {
					return s[:i]
				}
			}
			return s
		}
	}
}
