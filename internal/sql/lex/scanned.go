package lex

// A Range is a range of a text's tokens, by their indexes: Lo to Hi-1. The zero Range
// is nowhere.
type Range struct{ Lo, Hi int32 }

// Empty reports whether there is no token in s.
func (s Range) Empty() bool { return s.Lo >= s.Hi }

// A Scanned is a text with its tokens.
type Scanned struct {
	Src    string
	Tokens []Token // a token of kind End last
	Rules  *Rules
}

// Offset returns where token i begins, in bytes.
func (t *Scanned) Offset(i int32) int32 { return t.Tokens[i].Start }

// After returns the offset in bytes at the end of the token before i. There the caller inserts text that must follow a
// range with Hi i. The offset is 0 for the first token.
func (t *Scanned) After(i int32) int32 {
	if i == 0 {
		return 0
	}
	return t.Tokens[i-1].End
}

// TokenText returns the text of token i.
func (t *Scanned) TokenText(i int32) string { return t.Src[t.Tokens[i].Start:t.Tokens[i].End] }

// Word reports whether token i is one of the words, unquoted, in any case.
func (t *Scanned) Word(i int32, words ...string) bool { return t.Tokens[i].IsWord(t.Src, words...) }

// Name returns token i as a normalised name; ok reports whether the token is a name.
func (t *Scanned) Name(i int) (name string, ok bool) {
	return t.Rules.Name(t.Src, &t.Tokens[min(i, len(t.Tokens)-1)])
}

// Find calls the function of with each name among the tokens of s, until a result isn't negative. It returns this
// result and the name's token; or -1 and -1.
func (t *Scanned) Find(s Range, of func(name string) int) (found int, at int32) {
	for i := s.Lo; i < s.Hi; i++ {
		name, ok := t.Rules.Name(t.Src, &t.Tokens[i])
		if !ok {
			continue
		}
		if found := of(name); found >= 0 {
			return found, i
		}
	}
	return -1, -1
}

// Item returns item n, from 0, of the list in tokens s. The result is empty if the list has fewer items, or if an item
// before n such as t.* stands for an unknown number of columns.
func (t *Scanned) Item(s Range, n int) Range {
	lo, hi := int(s.Lo), int(s.Hi)
	for ; n > 0 && lo < hi; n-- {
		end := t.ItemEnd(lo, hi)
		if t.Spreads(lo, end) {
			return Range{s.Hi, s.Hi}
		}
		lo = end + 1
	}
	if lo >= hi {
		return Range{s.Hi, s.Hi}
	}
	return Range{int32(lo), int32(t.ItemEnd(lo, hi))}
}

// Selected returns item n, from 0, of the columns of a SELECT, without its AS; ok is false if the text doesn't show
// which item is number n.
func (t *Scanned) Selected(columns Range, n int) (item Range, ok bool) {
	lo, hi := int(columns.Lo), int(columns.Hi)
	if t.Word(int32(lo), "distinct", "all") {
		if lo++; t.Word(int32(lo), "on") {
			lo = t.Skip(lo + 1)
		}
	}
	for i, end := lo, 0; i < hi; i = end + 1 {
		end = t.ItemEnd(i, hi)
		if i == end || t.Spreads(i, end) {
			return Range{}, false
		}
		if n--; n < 0 {
			if end > i+2 && t.Word(int32(end-2), "as") {
				end -= 2
			}
			return Range{int32(i), int32(end)}, true
		}
	}
	return Range{}, false
}

// Spreads reports whether an item may stand for any number of columns or values, including none: *, t.*, (t.*),
// (value).* or t.* AS name.
func (t *Scanned) Spreads(lo, hi int) bool {
	for i := lo; i < hi; i++ {
		if t.Tokens[i].Is('*') && (i == lo || t.Tokens[i-1].Is('.')) {
			return true
		}
	}
	return false
}

// FoldsByLocale is Find for the words that the database's locale may fold to a different name.
func (t *Scanned) FoldsByLocale(of func(name string) int) (found int, at int32) {
	if !t.Rules.FoldsByLocale(t.Src) {
		return -1, -1
	}
	for i := range t.Tokens {
		if name, ok := t.Rules.FoldedByLocale(t.Src, &t.Tokens[i]); ok {
			if found := of(name); found >= 0 {
				return found, int32(i)
			}
		}
	}
	return -1, -1
}

// Source returns the text of s.
func (t *Scanned) Source(s Range) string {
	return t.Src[t.Tokens[s.Lo].Start:t.Tokens[s.Hi-1].End]
}

// Skip returns the index after token i, and after its partner if it opens a bracket.
func (t *Scanned) Skip(i int) int {
	if tok := &t.Tokens[min(i, len(t.Tokens)-1)]; tok.Is('(') || tok.Is('[') {
		return int(tok.Mate) + 1
	}
	return i + 1
}

// ItemEnd returns where the item that begins at i ends: at a comma or at hi.
func (t *Scanned) ItemEnd(i, hi int) int {
	for i < hi && !t.Tokens[i].Is(',') {
		i = t.Skip(i)
	}
	return i
}

// StatementFrom returns the tokens of the statement that begins at token i or after the semicolons there; the result is
// empty if no statement follows. A semicolon or the end follows the result.
func (t *Scanned) StatementFrom(i int32) (s Range) {
	for t.Tokens[i].Is(';') {
		i++
	}
	s = Range{i, i}
	for t.Tokens[s.Hi].Kind != End && !t.Tokens[s.Hi].Is(';') {
		s.Hi = int32(t.Skip(int(s.Hi)))
	}
	return s
}
