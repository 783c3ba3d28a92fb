package read

// Offset returns where token i begins, in bytes.
func (t *Text) Offset(i int32) int32 { return t.Tokens[i].Start }

// After returns where the token before i ends, in bytes: where something is added
// behind a span that ends at i. It is 0 for the first token.
func (t *Text) After(i int32) int32 {
	if i == 0 {
		return 0
	}
	return t.Tokens[i-1].End
}

// TokenText returns the text of token i.
func (t *Text) TokenText(i int32) string { return t.Src[t.Tokens[i].Start:t.Tokens[i].End] }

// Word reports whether token i is one of the words, unquoted, in any case.
func (t *Text) Word(i int32, words ...string) bool { return t.isWord(&t.Tokens[i], words...) }

// Name returns the name that token i stands for, normalised, if it is one.
func (t *Text) Name(i int) (name string, ok bool) {
	return t.grammar.Lex.Name(t.Src, &t.Tokens[min(i, len(t.Tokens)-1)])
}

// Behind returns what is behind the semicolon that ends the statement.
func (t *Text) Behind() string { return t.Src[t.Tokens[t.Hi].End:] }

// Find returns the first result of a function that isn't negative for a name among
// the tokens of s, and the name's token; or -1.
func (t *Text) Find(s Span, of func(name string) int) (found int, at int32) {
	for i := s.Lo; i < s.Hi; i++ {
		name, ok := t.grammar.Lex.Name(t.Src, &t.Tokens[i])
		if !ok {
			continue
		}
		if found := of(name); found >= 0 {
			return found, i
		}
	}
	return -1, -1
}

// Item returns item n, from 0, of a list, tokens s; it is empty if there are fewer, or where
// it can't be told which that is.
func (t *Text) Item(s Span, n int) Span {
	lo, hi := int(s.Lo), int(s.Hi)
	for ; n > 0 && lo < hi; n-- {
		end := t.itemEnd(lo, hi)
		if t.spreads(lo, end) {
			return Span{s.Hi, s.Hi}
		}
		lo = end + 1
	}
	if lo >= hi {
		return Span{s.Hi, s.Hi}
	}
	return span(lo, t.itemEnd(lo, hi))
}

// Selected returns the item number n, from 0, of the columns of a SELECT, without its AS;
// ok is false where it can't be told which that is.
func (t *Text) Selected(columns Span, n int) (item Span, ok bool) {
	lo, hi := int(columns.Lo), int(columns.Hi)
	if t.isWord(&t.Tokens[lo], "distinct", "all") {
		if lo++; t.isWord(&t.Tokens[lo], "on") {
			lo = t.skip(lo + 1)
		}
	}
	for i, end := lo, 0; i < hi; i = end + 1 {
		end = t.itemEnd(i, hi)
		if i == end || t.spreads(i, end) {
			return Span{}, false
		}
		if n--; n < 0 {
			if end > i+2 && t.isWord(&t.Tokens[end-2], "as") {
				end -= 2
			}
			return span(i, end), true
		}
	}
	return Span{}, false
}

// spreads reports whether an item may stand for any number of columns or values, also for
// none: *, t.*, (t.*), (value).* or t.* AS name.
func (t *Text) spreads(lo, hi int) bool {
	for i := lo; i < hi; i++ {
		if t.Tokens[i].Is('*') && (i == lo || t.Tokens[i-1].Is('.')) {
			return true
		}
	}
	return false
}

// FoldsByLocale returns the first word of the text that, by the database's locale,
// may or may not be one of the names for which of gives a result that isn't
// negative; or -1.
func (t *Text) FoldsByLocale(of func(name string) int) (found int, at int32) {
	if !t.grammar.Lex.FoldsByLocale(t.Src) {
		return -1, -1
	}
	for i := range t.Tokens {
		if name, ok := t.grammar.Lex.FoldedByLocale(t.Src, &t.Tokens[i]); ok {
			if found := of(name); found >= 0 {
				return found, int32(i)
			}
		}
	}
	return -1, -1
}
