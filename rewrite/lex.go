package rewrite

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind uint8

const (
	word   kind = iota + 1 // unquoted name or keyword
	quoted                 // quoted name, quotes included
	text                   // string constant, quotes and prefix included
	number
	param // placeholder
	punct // one byte: brackets, comma, semicolon, dot, or any operator character
	end   // after the last byte
)

// A token is a piece of a statement. Blank space and comments are between
// tokens and never in one.
type token struct {
	kind       kind
	char       byte // of a punct
	label      bool // of a word: it stands behind a dot or AS, where any word is a name
	start, end int32
	mate       int32 // of a bracket: the index of its partner; of a placeholder: its number
}

// A lexError says where a statement can't be read, and why.
type lexError struct {
	offset int
	reason string
	what   fault
}

// fault tells what follows from a lexError.
type fault uint8

const (
	unread    fault = iota // nothing more
	rejected               // the database refuses the statement, too
	bySetting              // it reads in two ways, by standard_conforming_strings
)

const ambiguousBackslash = "a backslash before a quote reads in two ways, by standard_conforming_strings; pass the value as an argument or write E'...'"

// A lexer splits one statement text into tokens, as the database's own scanner
// does. Where the database has two ways of reading, by a setting, it fails.
//
// Sources: PostgreSQL's src/backend/parser/scan.l, SQLite's src/tokenize.c.
type lexer struct {
	dialect Dialect
	src     string
	pos     int
	toks    []token
	open    []int32 // indexes of the brackets not yet closed

	setting setting // of a PostgreSQL session
}

// A setting is what standard_conforming_strings is taken for.
type setting uint8

const (
	either    setting = iota // not known
	standard                 // on: a backslash in a plain string is a character
	escapings                // off: it escapes the next one
)

// lex appends the tokens of src to toks, an end token last.
func lex(d Dialect, src string, toks []token) ([]token, *lexError) {
	return lexAs(d, src, toks, either)
}

// rejectedEscaping reports whether PostgreSQL with standard_conforming_strings
// off surely refuses the text: the last quote of 'C:\' doesn't end a string then,
// and mostly none does. So there is one way left in which the text can be run.
func rejectedEscaping(src string) bool {
	_, err := lexAs(Postgres, src, nil, escapings)
	return err != nil && err.what == rejected
}

func lexAs(d Dialect, src string, toks []token, as setting) ([]token, *lexError) {
	l := lexer{dialect: d, src: src, toks: toks, setting: as}
	if i := strings.IndexByte(src, 0); i >= 0 {
		return nil, &lexError{offset: i, reason: "it holds a NUL byte; drivers cut the text there"}
	}
	if !utf8.ValidString(src) {
		return nil, &lexError{offset: invalidUTF8(src), reason: "it is not valid UTF-8"}
	}
	for {
		if err := l.blank(); err != nil {
			return nil, err
		}
		if l.pos == len(src) {
			break
		}
		if err := l.next(); err != nil {
			return nil, err
		}
	}
	if n := len(l.open); n > 0 {
		return nil, &lexError{int(l.toks[l.open[n-1]].start), "a bracket is never closed", unread}
	}
	l.emit(end, len(src))
	return l.toks, nil
}

func (l *lexer) emit(k kind, start int) {
	t := token{kind: k, start: int32(start), end: int32(l.pos)}
	if n := len(l.toks); k == word && n > 0 {
		before := l.toks[n-1]
		t.label = isPunct(before, '.') ||
			before.kind == word && !before.label && equalFold(l.src[before.start:before.end], "as")
	}
	l.toks = append(l.toks, t)
}

// at returns the byte i places ahead, or 0 past the end.
func (l *lexer) at(i int) byte {
	if l.pos+i < len(l.src) {
		return l.src[l.pos+i]
	}
	return 0
}

// blank skips white space and comments.
func (l *lexer) blank() *lexError {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case isSpace(c):
			l.pos++
		case c == '-' && l.at(1) == '-':
			l.lineComment()
		case c == '/' && l.at(1) == '*':
			if err := l.blockComment(); err != nil {
				return err
			}
		case c == 0xEF && l.dialect == SQLite && strings.HasPrefix(l.src[l.pos:], "\uFEFF"):
			// SQLite takes a byte order mark before any token for white space.
			l.pos += 3
		default:
			return nil
		}
	}
	return nil
}

func (l *lexer) lineComment() {
	ends := "\n"
	if l.dialect == Postgres {
		ends = "\r\n"
	}
	stop := strings.IndexAny(l.src[l.pos:], ends)
	if stop < 0 {
		stop = len(l.src) - l.pos
	}
	l.pos += stop
}

// blockComment skips a comment; PostgreSQL's nest, SQLite's don't.
func (l *lexer) blockComment() *lexError {
	start, depth := l.pos, 0
	for l.pos < len(l.src) {
		switch {
		case l.src[l.pos] == '/' && l.at(1) == '*' && (depth == 0 || l.dialect == Postgres):
			depth++
			l.pos += 2
		case l.src[l.pos] == '*' && l.at(1) == '/':
			depth--
			l.pos += 2
			if depth == 0 {
				return nil
			}
		default:
			l.pos++
		}
	}
	if l.dialect == SQLite { // it ends with the text
		return nil
	}
	return &lexError{start, "a comment is never closed", rejected}
}

// next reads one token; there is at least one byte and it isn't blank.
func (l *lexer) next() *lexError {
	start := l.pos
	switch c := l.src[l.pos]; {
	case isDigit(c), c == '.' && isDigit(l.at(1)):
		l.number()
		l.emit(number, start)
	case isNameStart(c):
		return l.name()
	case c == '\'':
		return l.str(start, plainString)
	case c == '"':
		return l.until(quoted, start, '"', true)
	case l.dialect == SQLite:
		return l.nextSQLite(c)
	case c == '$':
		return l.dollar()
	default:
		return l.punct(c)
	}
	return nil
}

func (l *lexer) nextSQLite(c byte) *lexError {
	start := l.pos
	switch c {
	case '`':
		return l.until(quoted, start, '`', true)
	case '[':
		return l.until(quoted, start, ']', false)
	case '?':
		l.pos++
		l.run(isDigit)
		l.emit(param, start)
		return nil
	case ':', '@', '$', '#':
		return l.variable()
	}
	return l.punct(c)
}

// variable reads SQLite's named placeholder, with Tcl's :: and (suffix).
func (l *lexer) variable() *lexError {
	start, named := l.pos, false
	l.pos++
scan:
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case isNamePart(c):
			named = true
			l.pos++
		case c == '(' && named:
			close := strings.IndexAny(l.src[l.pos+1:], ") \t\n\v\f\r")
			if close < 0 || l.src[l.pos+1+close] != ')' {
				return &lexError{start, "a placeholder's suffix is never closed", unread}
			}
			l.pos += close + 2
			break scan
		case c == ':' && l.at(1) == ':':
			l.pos += 2
		default:
			break scan
		}
	}
	if !named {
		return &lexError{start, fmt.Sprintf("%q has no meaning here", l.src[start]), unread}
	}
	if err := l.blankInName(start); err != nil {
		return err
	}
	l.emit(param, start)
	return nil
}

// blankInName refuses what Unicode calls blank space in the name that began at
// start. To SQLite it is part of the name; mattn's driver cuts it off at the ends of
// what follows the first statement, and so makes another name of it.
func (l *lexer) blankInName(start int) *lexError {
	if l.dialect != SQLite {
		return nil
	}
	for i := start; i < l.pos; i++ {
		if l.src[i] < utf8.RuneSelf {
			continue
		}
		if r, _ := utf8.DecodeRuneInString(l.src[i:]); unicode.IsSpace(r) {
			return &lexError{i, fmt.Sprintf("the blank %U stands outside of quotes, where drivers may cut it off a name; write a plain blank, or put the name in quotes", r), unread}
		}
	}
	return nil
}

// number reads digits and dots. What may follow them, as in 1e5, 0x1F or 1_000,
// becomes a word of its own: databases differ there, and nothing depends on it.
func (l *lexer) number() {
	// Two dots are a range of PL/pgSQL; they end a number.
	for isDigit(l.at(0)) || l.at(0) == '.' && l.at(1) != '.' {
		l.pos++
	}
}

// name reads a name or keyword, or the string that its letters introduce.
func (l *lexer) name() *lexError {
	start := l.pos
	l.run(isNamePart)
	if err := l.blankInName(start); err != nil {
		return err
	}
	if n := len(l.toks); n > 0 && l.dialect == Postgres && l.toks[n-1].kind == quoted &&
		l.src[l.toks[n-1].start]|0x20 == 'u' && strings.EqualFold(l.src[start:l.pos], "uescape") {
		return &lexError{int(l.toks[n-1].start), "a name spelled with UESCAPE isn't understood; write it in double quotes", unread}
	}
	if l.pos-start > 1 || l.pos == len(l.src) {
		l.emit(word, start)
		return nil
	}
	c, next := l.src[start]|0x20, l.src[l.pos]
	switch {
	case next == '\'' && (c == 'x' || l.dialect == Postgres && c == 'b'):
		return l.str(start, rawString)
	case next == '\'' && c == 'n' && l.dialect == Postgres:
		return l.str(start, plainString)
	case next == '\'' && c == 'e' && l.dialect == Postgres:
		return l.str(start, escapeString)
	case next == '&' && c == 'u' && l.dialect == Postgres && l.at(1) == '\'':
		if l.setting == escapings {
			return &lexError{start, "a string with Unicode escapes needs standard_conforming_strings", rejected}
		}
		l.pos++
		return l.str(start, rawString)
	case next == '&' && c == 'u' && l.dialect == Postgres && l.at(1) == '"':
		l.pos++
		return l.until(quoted, start, '"', true)
	}
	l.emit(word, start)
	return nil
}

// stringKind tells what a backslash is in a string constant.
type stringKind uint8

const (
	rawString    stringKind = iota // a character
	plainString                    // in PostgreSQL either, by setting
	escapeString                   // it takes the next byte with it
)

// str reads a string constant whose opening quote is next.
func (l *lexer) str(start int, kind stringKind) *lexError {
	l.pos++
	escapes := kind == escapeString || kind == plainString && l.setting == escapings
	twoWays := kind == plainString && l.setting == either && l.dialect == Postgres
	// What continues x'0' or b'0' is a string without escapes, whatever the setting.
	keeps := escapes || kind == rawString && l.dialect == Postgres
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == '\\' && escapes && l.swallowed(l.pos):
			return l.twoEncodings()
		case c == '\\' && escapes:
			l.pos += 2
		case c == '\\' && twoWays && l.at(1) == '\'':
			return &lexError{l.pos, ambiguousBackslash, bySetting}
		case c == '\\' && twoWays && l.at(1) == '\\':
			// With the setting off the two are one character, and the second
			// escapes nothing; with it on neither does. Only if the first is part
			// of a character before it does the second escape what follows.
			split := l.swallowed(l.pos)
			l.pos += 2
			if split && l.at(0) == '\'' {
				return &lexError{l.pos, `backslashes before a quote read in two ways, by standard_conforming_strings; pass the value as an argument or write E'...'`, bySetting}
			}
		case c == '\'' && l.at(1) == '\'':
			l.pos += 2
		case c == '\'':
			l.pos++
			if keeps && l.continued() {
				l.pos++
				continue
			}
			l.emit(text, start)
			return nil
		default:
			l.pos++
		}
	}
	return &lexError{start, "a string is never closed", rejected}
}

// swallowed reports whether the ASCII byte at i could be the second byte of a
// character, if PostgreSQL read the text in GBK, Big5, Shift JIS or the like.
func (l *lexer) swallowed(i int) bool {
	return l.dialect == Postgres && i > 0 && l.src[i-1] >= 0x80
}

func (l *lexer) twoEncodings() *lexError {
	return &lexError{l.pos, "it reads in two ways, by client_encoding; pass the value as an argument, or put a blank or quotes before this byte", unread}
}

// continued moves to the quote that continues the string just closed: in
// PostgreSQL one that follows after blanks with a newline among them. It matters
// where a quote by itself would begin a string that reads otherwise.
func (l *lexer) continued() bool {
	back := l.pos
	newline := false
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == '\n' || c == '\r':
			newline = true
			l.pos++
		case c == ' ' || c >= '\t' && c <= '\r':
			l.pos++
		case c == '-' && l.at(1) == '-':
			l.lineComment()
		case c == '\'' && newline:
			return true
		default:
			l.pos = back
			return false
		}
	}
	l.pos = back
	return false
}

// until reads a quoted name up to close; doubled, close stands for itself.
func (l *lexer) until(k kind, start int, close byte, doubles bool) *lexError {
	l.pos++
	for l.pos < len(l.src) {
		if l.src[l.pos] != close {
			l.pos++
			continue
		}
		l.pos++
		if doubles && l.at(0) == close {
			l.pos++
			continue
		}
		l.emit(k, start)
		return nil
	}
	return &lexError{start, "a quoted name is never closed", rejected}
}

// dollar reads PostgreSQL's $1 and $tag$...$tag$.
func (l *lexer) dollar() *lexError {
	start := l.pos
	l.pos++
	if isDigit(l.at(0)) {
		l.run(isDigit)
		l.emit(param, start)
		return nil
	}
	l.run(func(c byte) bool { return isNamePart(c) && c != '$' })
	if l.at(0) != '$' {
		return &lexError{start, `"$" has no meaning here`, unread}
	}
	l.pos++
	tag := l.src[start:l.pos]
	close := strings.Index(l.src[l.pos:], tag)
	if close < 0 {
		return &lexError{start, "a dollar-quoted string is never closed", rejected}
	}
	l.pos += close + len(tag)
	l.emit(text, start)
	return nil
}

// punct reads one byte and pairs the brackets.
func (l *lexer) punct(c byte) *lexError {
	start, here := l.pos, int32(len(l.toks))
	if (c == '[' || c == ']') && l.swallowed(start) {
		return l.twoEncodings()
	}
	if c == '\\' && l.setting == escapings {
		return &lexError{start, "a backslash stands outside of a string", rejected}
	}
	l.pos++
	l.emit(punct, start)
	l.toks[here].char = c
	switch c {
	case '(', '[':
		l.open = append(l.open, here)
	case ')', ']':
		n := len(l.open)
		if n == 0 || (l.toks[l.open[n-1]].char == '(') != (c == ')') {
			return &lexError{start, "a bracket closes what was never opened", unread}
		}
		mate := l.open[n-1]
		l.open = l.open[:n-1]
		l.toks[here].mate, l.toks[mate].mate = mate, here
	}
	return nil
}

func (l *lexer) run(part func(byte) bool) {
	for l.pos < len(l.src) && part(l.src[l.pos]) {
		l.pos++
	}
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameStart(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80
}

// isNamePart holds for what continues a name, in both dialects a $ too.
func isNamePart(c byte) bool { return isNameStart(c) || isDigit(c) || c == '$' }

func invalidUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			return i
		}
	}
	return 0
}
