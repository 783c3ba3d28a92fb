package session

import "strings"

// Guards read columns of the row that a statement writes. If a table's name stands for a view, the view's definition
// computes the columns, perhaps from another row, or from none that is written.

// Names are names without schemas, as the database stores them.
type Names struct {
	All  bool // any name, because of a pattern
	List []string
}

// Any reports whether the set isn't empty.
func (n *Names) Any() bool { return n.All || len(n.List) > 0 }

// A View is a view or a foreign table with a name in Names.
type View struct {
	Schema, Name string
	Visible      bool // the session found it by its name without a schema
}

// InPlace returns the view that a statement writes to, or may write to, by a table's name; nil for none. If the
// session, or the statement itself, may change the schema in which names are found, a name without a schema may stand
// for any view of that name.
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
