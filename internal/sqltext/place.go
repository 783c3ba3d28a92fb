package sqltext

import (
	"slices"
	"strings"
)

// Place returns a statement of sqlfence's own with its tables in a schema; as it is if schema is empty.
// The schema is a name as the database stores it. Constants and names in quotes stay as they are, and so
// does what is qualified already; what asks the catalogue for one of the tables asks for that of the schema.
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
			end = behind(text, at+1, string(c))
		case strings.HasPrefix(text[at:], "--"):
			end = behind(text, at, "\n")
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

// isPlaced reports whether a word is a name that has a schema: that of a table, or of MySQL's triggers on
// the ledger.
func isPlaced(word string) bool {
	return slices.Contains(OwnTables, word) || strings.HasPrefix(word, LedgerTriggerPrefix)
}

// behind returns where the text goes on behind an end.
func behind(text string, from int, end string) int {
	if i := strings.Index(text[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(text)
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
