package sqltext

import (
	"slices"
	"strings"
)

// QuoteIn returns the quoted name of a table in a schema, or of the table alone if schema is empty.
func QuoteIn(d Dialect, schema, table string) string {
	if schema == "" {
		return d.Quote(table)
	}
	return d.Quote(schema) + "." + d.Quote(table)
}

// Place adds a schema to the tables of sqlfence's own statement; if schema is empty the statement is unchanged. schema
// is the name as the database stores it. Constants, quoted names and qualified names are unchanged; catalogue queries
// find the table of the schema.
func Place(d Dialect, schema, text string) string {
	if schema == "" {
		return text
	}
	text = d.PlaceInCatalogue(schema, text)
	qualifier := d.Quote(schema) + "."
	var b strings.Builder
	for at := 0; at < len(text); {
		end := at + 1
		switch c := text[at]; {
		case c == '\'' || c == '"' || c == '`':
			end = after(text, at+1, string(c))
		case strings.HasPrefix(text[at:], "--"):
			end = after(text, at, "\n")
		case isWordByte(c):
			for end < len(text) && isWordByte(text[end]) {
				end++
			}
			if isPlaced(text[at:end]) && !strings.HasSuffix(text[:at], ".") {
				b.WriteString(qualifier)
			}
		}
		b.WriteString(text[at:end])
		at = end
	}
	return b.String()
}

// isPlaced reports whether a word is the name of a table or of MySQL's triggers on the ledger, which need a schema.
func isPlaced(word string) bool {
	return slices.Contains(OwnTables, word) || strings.HasPrefix(word, LedgerTriggerPrefix)
}

// after returns the position after the next occurrence of end.
func after(text string, from int, end string) int {
	if i := strings.Index(text[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(text)
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
