package rewrite

import "strings"

// keepsEncoding refuses a statement that says it changes the encoding in which
// PostgreSQL reads the statements after it. In some, a character's second byte
// is a backslash to those who read UTF-8. There are other ways to change it,
// which can't all be seen; so the lexer refuses a text that would read otherwise.
func (r *reader) keepsEncoding() bool {
	if r.dialect != Postgres || r.isWord(r.tok(), "show", "reset") || r.isWord(r.tok(), "set") && r.setsUTF8() {
		return true
	}
	for i := r.i; i < r.stop; i++ {
		t := r.toks[i]
		s := r.src[t.start:t.end]
		var setting bool
		switch t.kind {
		case word:
			setting = r.isWord(t, "client_encoding") || r.isWord(t, "names") && r.isWord(r.tok(), "set") &&
				(i == r.i+1 || i == r.i+2 && r.isWord(r.toks[i-1], "session", "local"))
		case quoted:
			name, _ := normal(r.dialect, r.src, t)
			setting = name == "client_encoding"
		case text: // set_config('client_encoding', ...)
			setting = strings.EqualFold(strings.Trim(s, "'eEnN"), "client_encoding")
		}
		if setting {
			return r.refuse(-1, i, "it may change client_encoding, and then later statements would read in two ways; sqlfence needs UTF8")
		}
	}
	return true
}

// setsUTF8 reports whether the region ends with the name of that encoding.
func (r *reader) setsUTF8() bool {
	t := r.toks[r.stop-1]
	s := strings.ToLower(strings.Trim(r.src[t.start:t.end], `'"`))
	return s == "utf8" || s == "utf-8" || s == "unicode"
}
