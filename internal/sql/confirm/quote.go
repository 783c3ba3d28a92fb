package confirm

import "strings"

// endOf returns where the next end behind i ends; -1 if there is none.
func endOf(s string, i int, end string) int {
	n := strings.Index(s[i:], end)
	if n < 0 {
		return -1
	}
	return i + n + len(end)
}

// lineEnd returns where the line ends that has come to i.
func (d *Dialect) lineEnd(s string, i int) int {
	for i < len(s) && strings.IndexByte(d.LineEnds, s[i]) < 0 {
		i++
	}
	return i
}

// commentEnd returns the place behind the comment that begins at i; -1 if it has no
// end and needs one.
func (d *Dialect) commentEnd(s string, i int) int {
	for depth := 0; i+1 < len(s); i++ {
		switch {
		case s[i:i+2] == "*/":
			i++
			if depth--; depth == 0 {
				return i + 1
			}
		case s[i:i+2] == "/*" && (depth == 0 || d.NestedComments.Is()):
			i++
			depth++
		}
	}
	if d.OpenComments.Is() {
		return len(s)
	}
	return -1
}

// quoteEnd returns the place behind the quote that ends what has begun before i.
func quoteEnd(s string, i int, quote byte, escapes bool) int {
	for ; i < len(s); i++ {
		switch {
		case s[i] == '\\' && escapes:
			i++
		case s[i] != quote:
		case i+1 < len(s) && s[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return -1
}

// continuedEnd returns the end of a string with escapes that has come to i, which
// goes on behind a newline.
func (d *Dialect) continuedEnd(s string, i int) int {
	for i >= 0 {
		j, newline := i, false
		for j < len(s) {
			if s[j] == '\n' || s[j] == '\r' {
				newline = true
			} else if strings.HasPrefix(s[j:], "--") {
				j = d.lineEnd(s, j)
				continue
			} else if s[j] != ' ' && (s[j] < '\t' || s[j] > '\r') {
				break
			}
			j++
		}
		if !newline || j == len(s) || s[j] != '\'' {
			return i
		}
		i = quoteEnd(s, j+1, '\'', true)
	}
	return i
}

// dollarEnd returns the place behind the string that the dollar quote at i begins.
func dollarEnd(s string, i int) int {
	tag := strings.IndexByte(s[i+1:], '$')
	if tag < 0 {
		return -1
	}
	behind := i + tag + 2
	return endOf(s, behind, s[i:behind])
}

// variableEnd returns the end of a named placeholder, with the suffixes of Tcl that
// SQLite takes.
func variableEnd(s string, i int) int {
	for i < len(s) {
		switch {
		case inName[s[i]]:
			i++
		case strings.HasPrefix(s[i:], "::"):
			i += 2
		case s[i] == '(':
			return endOf(s, i, ")")
		default:
			return i
		}
	}
	return i
}
