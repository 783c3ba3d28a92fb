package postgres

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// Qualified returns a statement of sqlfence's own with the schema pg_catalog before its comparison operators and the
// types of its casts. Otherwise, if the search path has another schema before pg_catalog, or pg_catalog has no operator
// of just these types, the server could find an application's. The equals signs of a SET list stay, and so do
// constants, comments and OPERATOR(=).
//
// OPERATOR(pg_catalog.=) binds as tightly as || does, so only arithmetic may stand on its right side. IN becomes = ANY
// or <> ALL. The statements themselves name the schema of functions and all other operators, and have no BETWEEN, LIKE,
// NULLIF, IS DISTINCT FROM, CASE with an operand, or IN for rows.
func Qualified(statement string) string {
	const (
		none = iota
		column
		value
	)
	b := make([]byte, 0, len(statement)+512)
	var list [32]int    // what comes next in a SET list, by the depth of brackets
	var ends [32]string // what stands before the closing bracket
	depth := 0
	for at := 0; at < len(statement); {
		set, end := &list[depth%len(list)], at+1
		switch c := statement[at]; {
		case c == '\'' || c == '"':
			end += strings.IndexByte(statement[end:]+string(c), c) + 1
		case c == '$' && dollarTag.MatchString(statement[at:]):
			tag := dollarTag.FindString(statement[at:])
			end = at + len(tag)
			end += strings.Index(statement[end:]+tag, tag) + len(tag)
		case c == '-' && strings.HasPrefix(statement[at:], "--"):
			end = at + strings.IndexByte(statement[at:]+"\n", '\n')
		case c == '(':
			depth++
			list[depth%len(list)], ends[depth%len(ends)] = none, ""
		case c == ')':
			b = append(b, ends[depth%len(ends)]...)
			depth = max(depth-1, 0)
		case c == ',' && *set == value:
			*set = column
		case isWordByte(c):
			for end < len(statement) && isWordByte(statement[end]) {
				end++
			}
			switch word := statement[at:end]; word {
			case "text", "json", "int2", "timestamptz":
				if strings.HasSuffix(statement[:at], "::") {
					b = append(b, "pg_catalog."...)
				}
			case "SET":
				*set = column
			case "WHERE", "FROM", "RETURNING", "SELECT":
				*set = none
			case "IN":
				if !strings.HasPrefix(statement[end:], " (") {
					break
				}
				operator := "OPERATOR(pg_catalog.=) ANY ("
				if before, ok := bytes.CutSuffix(b, []byte("NOT ")); ok {
					b, operator = before, "OPERATOR(pg_catalog.<>) ALL ("
				}
				b = append(b, operator...)
				at = end + len(" (")
				depth++
				list[depth%len(list)], ends[depth%len(ends)] = none, ""
				if !strings.HasPrefix(statement[at:], "SELECT ") {
					b = append(b, "ARRAY["...)
					ends[depth%len(ends)] = "]"
				}
				continue
			}
		case strings.IndexByte(operatorBytes, c) >= 0:
			for end < len(statement) && strings.IndexByte(operatorBytes, statement[end]) >= 0 {
				end++
			}
			switch operator := statement[at:end]; {
			case operator == "=" && *set == column:
				*set = value
			case slices.Contains(comparisons, operator) && (at == 0 || strings.IndexByte(":.(", statement[at-1]) < 0):
				b = append(b, "OPERATOR(pg_catalog."+operator+")"...)
				at = end
				continue
			}
		}
		end = min(end, len(statement))
		b = append(b, statement[at:end]...)
		at = end
	}
	return string(b)
}

// A DO block of sqlfence stores CurrentPath in its variable path, and begins with CatalogueFirst, so that it finds
// PostgreSQL's operators first. It ends with PathAsBefore. It names the schema of each object that it creates.
const (
	CurrentPath    = "pg_catalog.current_setting('search_path')"
	CatalogueFirst = "PERFORM pg_catalog.set_config('search_path', pg_catalog.concat_ws(', ', 'pg_catalog', " +
		"CASE WHEN pg_catalog.textne(path, '') THEN path END), true);"
	PathAsBefore = "PERFORM pg_catalog.set_config('search_path', path, true);"
)

const operatorBytes = "+-*/<>=~!@#%^&|`?"

var comparisons = []string{"=", "<>", "<", "<=", ">", ">="}

var dollarTag = regexp.MustCompile(`^\$([a-z_][a-z0-9_]*)?\$`)

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
