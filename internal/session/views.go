package session

import "strings"

// Guards read columns of the row that a statement writes. Where a table's name stands for a view, these are what its
// definition says, and so may be another row's, or none that is written.

// Names are names without schemas, as the database stores them.
type Names struct {
	All  bool // a pattern stands for any
	List []string
}

// Any reports whether there are any.
func (n *Names) Any() bool { return n.All || len(n.List) > 0 }

// A View is a view or a foreign table with one of these names.
type View struct {
	Schema, Name string
	Visible      bool // the session found it by its name alone when it was asked
}

// InPlace returns the view that a statement writes to, or may write to, by a table's name; nil for none. A session that
// may find names elsewhere than when it was asked may find any by a name without a schema, and so may a statement that
// changes where they are found.
func (s *Session) InPlace(schema, name, query string) *View {
	for i := range s.Views {
		v := &s.Views[i]
		switch {
		case !strings.EqualFold(v.Name, name):
		case strings.EqualFold(v.Schema, schema), schema == "" && (v.Visible || s.strayed || s.mayStray(query)):
			return v
		}
	}
	return nil
}
