package session

import "strings"

// Guards read columns of the row that a statement writes. If a table's name stands for a view, the view's definition
// computes the columns, perhaps from a different row than the written one.

// Names are names without schemas, as the database stores them.
type Names struct {
	All  bool // the set contains any name, because a pattern is registered
	List []string
}

// Any reports whether the set isn't empty.
func (n *Names) Any() bool { return n.All || len(n.List) > 0 }

// A View is a view or a foreign table with a name that is also the name of a table with guarded columns.
type View struct {
	Schema, Name string
	Visible      bool // the session found the view by its name without a schema
	Aliased      bool // statements use another name for the schema
}

// InPlace returns the view that a statement writes to, or may write to, by a table's name; nil if there is no such
// view. If the session may have changed, or the statement may change, the schema in which names are found, a name
// without a schema may stand for any view of that name.
func (s *Session) InPlace(schema, name, query string) *View {
	for i := range s.Views {
		v := &s.Views[i]
		switch {
		case !strings.EqualFold(v.Name, name):
		case v.Aliased, strings.EqualFold(v.Schema, schema), schema == "" &&
			(v.Visible || s.schemaChanged || s.mayChangeSchema(query)):
			return v
		}
	}
	return nil
}
