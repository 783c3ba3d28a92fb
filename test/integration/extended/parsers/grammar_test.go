package parsers

import (
	"math/rand/v2"
	"strings"
)

// A grammar maps a symbol to its productions. In a production {x} is the symbol x, and spaces separate tokens; ␠ is a
// space inside a quoted token. Expanding only first productions must terminate.
type grammar map[string][]string

// maxDepth is the depth from which only first productions are expanded.
const maxDepth = 14

// write returns the tokens of a random sentence of the symbol.
func (g grammar) write(r *rand.Rand, symbol string) []string {
	var b strings.Builder
	g.expand(r, &b, symbol, 0)
	tokens := strings.Fields(b.String())
	for i := range tokens {
		tokens[i] = strings.ReplaceAll(tokens[i], "␠", " ")
	}
	return tokens
}

func (g grammar) expand(r *rand.Rand, b *strings.Builder, symbol string, depth int) {
	ways := g[symbol]
	if ways == nil {
		panic("grammar: no symbol " + symbol)
	}
	way := ways[0]
	// Long sentences are ended early, because short statements show most defects.
	if depth < maxDepth && b.Len() < 400 {
		way = ways[r.IntN(len(ways))]
	}
	for {
		before, rest, found := strings.Cut(way, "{")
		b.WriteString(before)
		if !found {
			return
		}
		inner, after, _ := strings.Cut(rest, "}")
		g.expand(r, b, inner, depth+1)
		way = after
	}
}

// text joins tokens by single spaces.
func text(tokens []string) string { return strings.Join(tokens, " ") }

// mutate deletes, swaps, duplicates or replaces one to three tokens.
func mutate(r *rand.Rand, tokens []string) []string {
	out := append([]string(nil), tokens...)
	for n := 1 + r.IntN(3); n > 0 && len(out) > 1; n-- {
		i, j := r.IntN(len(out)), r.IntN(len(out))
		switch r.IntN(5) {
		case 0:
			out = append(out[:i], out[i+1:]...)
		case 1:
			out[i], out[j] = out[j], out[i]
		case 2:
			out = append(out[:i+1], out[i:]...)
		case 3:
			out[i] = out[j]
		case 4: // move several adjacent tokens
			k := min(i+1+r.IntN(6), len(out))
			run := append([]string(nil), out[i:k]...)
			rest := append(append([]string(nil), out[:i]...), out[k:]...)
			j = min(j, len(rest))
			out = append(append(append([]string(nil), rest[:j]...), run...), rest[j:]...)
		}
	}
	return out
}

// A variant writes a statement in another spelling with the same meaning.
type variant struct {
	name string
	vary func(r *rand.Rand, tokens []string) string
}

// recase changes the case of unquoted words.
func recase(r *rand.Rand, tokens []string) string {
	out := make([]string, len(tokens))
	for i, t := range tokens {
		out[i] = t
		if strings.ContainsAny(t, "'\"`[$:@#") {
			continue
		}
		switch r.IntN(3) {
		case 0:
			out[i] = strings.ToUpper(t)
		case 1:
			out[i] = strings.ToLower(t)
		}
	}
	return text(out)
}

// glue joins tokens without spaces where no parser needs a space.
func glue(_ *rand.Rand, tokens []string) string {
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 && !canTouch(tokens[i-1], t) {
			b.WriteByte(' ')
		}
		b.WriteString(t)
	}
	return b.String()
}

func canTouch(a, b string) bool {
	const brackets = "(),;"
	last, first := a[len(a)-1], b[0]
	switch {
	case strings.IndexByte(brackets, last) >= 0 || strings.IndexByte(brackets, first) >= 0:
		return true
	case last == '"' || last == '\'':
		return isLetter(first)
	case first == '"':
		return len(a) > 2 && isLetter(last) && isLetter(a[0])
	}
	return false
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// respace puts blanks and comments between tokens.
func respace(blanks ...string) func(*rand.Rand, []string) string {
	return func(r *rand.Rand, tokens []string) string {
		var b strings.Builder
		for i, t := range tokens {
			if i > 0 || r.IntN(4) == 0 {
				b.WriteString(blanks[r.IntN(len(blanks))])
			}
			b.WriteString(t)
		}
		b.WriteString(blanks[r.IntN(len(blanks))])
		return b.String()
	}
}

// requote quotes plain names of tables and columns.
func requote(names []string, quotes ...func(string) string) func(*rand.Rand, []string) string {
	return func(r *rand.Rand, tokens []string) string {
		out := append([]string(nil), tokens...)
		for i, t := range tokens {
			for _, n := range names {
				if t == n && r.IntN(2) == 0 {
					out[i] = quotes[r.IntN(len(quotes))](t)
				}
			}
		}
		return text(out)
	}
}

// realias adds an alias to the table of a simple write.
func realias(_ *rand.Rand, tokens []string) string {
	for i := 0; i+2 < len(tokens); i++ {
		name, next := tokens[i+1], tokens[i+2]
		if name != registered[0] && name != registered[1] || strings.Contains(text(tokens), name+".") ||
			strings.Contains(text(tokens), name+" .") {
			continue
		}
		if tokens[i] == "UPDATE" && next == "SET" || tokens[i] == "FROM" && i > 0 && tokens[i-1] == "DELETE" && next == "WHERE" ||
			tokens[i] == "INTO" && next == "(" {
			out := append([]string(nil), tokens[:i+2]...)
			return text(append(append(out, "AS", "zz"), tokens[i+2:]...))
		}
	}
	return text(tokens)
}
