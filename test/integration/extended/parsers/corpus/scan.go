package main

import "strings"

// piece returns how long the quoted text, comment or placeholder at the start of s is, and
// whether it is one: enough of a lexer for texts that a database's parser has accepted or
// will judge.
func piece(s string) (n int, kind byte) {
	until := func(from int, end string) int {
		if i := strings.Index(s[from:], end); i >= 0 {
			return from + i + len(end)
		}
		return len(s)
	}
	switch c := s[0]; {
	case c == '\'' || c == '"' || c == '`':
		return until(1, s[:1]), 'q'
	case strings.HasPrefix(s, "--"):
		return until(2, "\n"), 'c'
	case strings.HasPrefix(s, "/*"):
		return until(2, "*/"), 'c'
	case c == '?':
		return 1 + digits(s[1:]), 'p'
	case c == '$':
		if n := digits(s[1:]); n > 0 {
			return 1 + n, 'p'
		}
		if n := nameLength(s[1:]); n+1 < len(s) && s[n+1] == '$' {
			return until(n+2, s[:n+2]), 'q'
		} else if n > 0 {
			return 1 + n, 'p'
		}
	case strings.HasPrefix(s, "::"):
		return 2, 0
	case c == ':' || c == '@':
		if n := nameLength(s[1:]); n > 0 {
			return 1 + n, 'p'
		}
	}
	if n := nameLength(s); n > 0 {
		return n, 'n'
	}
	return 1, 0
}

func digits(s string) (n int) {
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func nameLength(s string) (n int) {
	for n < len(s) && isNameByte(s[n]) {
		n++
	}
	return n
}

// normal returns a form of a statement that is equal for those that differ in blanks,
// comments, the case of words, and the names of placeholders.
func normal(sql string) string {
	var b strings.Builder
	blank := false
	for len(sql) > 0 {
		n, kind := piece(sql)
		s := sql[:n]
		sql = sql[n:]
		switch {
		case kind == 'c' || strings.TrimLeft(s, " \t\r\n\f") == "":
			blank = true
			continue
		case kind == 'p':
			s = "?"
		case kind != 'q':
			s = strings.ToLower(s)
		}
		if blank && b.Len() > 0 && isNameByte(s[0]) && isNameByte(b.String()[b.Len()-1]) {
			b.WriteByte(' ')
		}
		blank = false
		b.WriteString(s)
	}
	return strings.TrimRight(b.String(), "; ")
}

// numbered gives PostgreSQL's placeholders to a text with others: ?, as many libraries
// allow for all databases, :name as sqlx does, and @name as sqlc and pgx do.
func numbered(sql string) string {
	var b strings.Builder
	names := map[string]int{}
	count := 0
	for len(sql) > 0 {
		n, kind := piece(sql)
		s := sql[:n]
		sql = sql[n:]
		if kind == 'p' && s[0] != '$' {
			number := names[s]
			if number == 0 || s == "?" {
				count++
				number = count
				names[s] = number
			}
			b.WriteByte('$')
			s = itoa(number)
		}
		b.WriteString(s)
	}
	return b.String()
}
