package main

import "strings"

// fill puts something plausible into the gaps of a text: a name where a table or a column stands, a number for a number
// and in lists. For any other gap, such as a list of columns, unknown is the word before the gap.
func fill(sql string) (filled, unknown string) {
	var b strings.Builder
	for {
		before, behind, found := strings.Cut(sql, string(rune(gap)))
		b.WriteString(before)
		if !found {
			return b.String(), ""
		}
		verb := behind[0]
		sql = behind[1:]
		value, ok := plausible(b.String(), sql, verb)
		if !ok {
			return "", lastWord(b.String())
		}
		b.WriteString(value)
	}
}

func plausible(before, behind string, verb byte) (string, bool) {
	trimmed := strings.TrimRight(before, " \t\r\n")
	switch {
	case verb == 'd' || verb == 't':
		return "1", true
	case verb == 'q':
		return `"gap_name"`, true
	case strings.HasSuffix(before, `"`), strings.HasSuffix(before, "`"), strings.HasSuffix(before, "'"),
		strings.HasSuffix(before, "."), strings.HasPrefix(behind, "."):
		return "gap_name", true
	case behind != "" && isNameByte(behind[0]), before != "" && isNameByte(before[len(before)-1]):
		return "gap", true
	case strings.HasSuffix(trimmed, "("):
		if strings.EqualFold(lastWord(strings.TrimSuffix(trimmed, "(")), "in") {
			return "1", true
		}
		return "", false
	}
	switch strings.ToLower(lastWord(trimmed)) {
	case "into", "update", "from", "join", "table", "only":
		return "gap_table", true
	case "limit", "offset":
		return "1", true
	case "set", "where", "and", "or", "by":
		return "gap_column", strings.HasPrefix(strings.TrimLeft(behind, " \t\r\n"), "=")
	}
	return "", false
}

// lastWord returns the word at the end.
func lastWord(s string) string {
	s = strings.TrimRight(s, " \t\r\n")
	i := len(s)
	for i > 0 && isNameByte(s[i-1]) {
		i--
	}
	return s[i:]
}

func isNameByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_'
}
