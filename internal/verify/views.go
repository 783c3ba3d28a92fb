package verify

import (
	"slices"
	"strings"
)

// A view is one that can be written, with the text of its query.
type view struct {
	schema, name string
	query        string
}

// writableViews returns the links of the views whose rows are those of relations, also by way
// of other views.
func writableViews(db Database, views []view, of []*relation) (links []link) {
	for _, rel := range of {
		reached := []written{{rel.schema, rel.name}}
		for i := 0; i < len(reached); i++ {
			for _, v := range views {
				known := func(w written) bool { return w.schema == v.schema && w.name == v.name }
				if !slices.ContainsFunc(reached, known) && selectsFrom(db, v, reached[i]) {
					reached = append(reached, written{v.schema, v.name})
					links = append(links, link{code: "view", id: rel.id, schema: v.schema, name: v.name})
				}
			}
		}
	}
	return links
}

// selectsFrom reports whether a view's rows are those of a table: whether the table stands in
// the FROM of its query, and not only in a condition. A name without a schema may be any.
func selectsFrom(db Database, v view, table written) bool {
	text := fromClause(v.query)
	from := words.FindAllStringIndex(text, -1)
	for i, at := range from {
		if db.same(db.word(text[at[0]:at[1]])) != db.same(table.name) {
			continue
		}
		if i == 0 || strings.TrimSpace(text[from[i-1][1]:at[0]]) != "." {
			return true
		}
		if db.same(db.word(text[from[i-1][0]:from[i-1][1]])) == db.same(table.schema) {
			return true
		}
	}
	return false
}

// fromClause returns what stands between the FROM of a query and what follows it, of the words
// outside of parentheses.
func fromClause(query string) string {
	begin, depth := -1, 0
	for i := 0; i < len(query); i++ {
		switch c := query[i]; {
		case c == '\'' || c == '"' || c == '`':
			if end := strings.IndexByte(query[i+1:], c); end >= 0 {
				i += end + 1
			}
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth == 0 && isLetter(c) && (i == 0 || !isLetter(query[i-1])):
			end := i
			for end < len(query) && isLetter(query[end]) {
				end++
			}
			switch word := strings.ToLower(query[i:end]); {
			case word == "from" && begin < 0:
				begin = end
			case begin >= 0 && slices.Contains([]string{"where", "group", "having", "order", "limit", "with", "union", "for"}, word):
				return query[begin:i]
			}
			i = end - 1
		}
	}
	if begin < 0 {
		return ""
	}
	return query[begin:]
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
