package sqltext

import "strings"

// Fragments are the fragments that a statement's template names in braces: {now}, {micros expires_at}. The text after
// the name is the argument of a [Func], and may contain braces. A brace that no lower-case letter follows is text.
//
// Every statement has the fragments of [Vocabulary], such as {now}, {after ticks}, {floor} (the [LowerBound]) and, for
// a lease's row, {alive row} and {live row}; and the fragments of its dialect.
type Fragments map[string]Fragment

// A Fragment is the meaning of a name in a template: [SQL], [Raw], [Func] or an argument, from [Value].
type Fragment interface {
	write(b *Builder, argument string, known []Fragments)
}

// SQL is a template in which names in braces stand for fragments.
type SQL string

// Raw is text that is inserted unchanged, such as a quoted name.
type Raw string

// Func returns the SQL for its argument, an expression.
type Func func(argument string) string

type value struct{ any }

// Value is an argument, which is sent separately from the SQL; each use has a placeholder.
func Value(v any) Fragment { return value{v} }

func (p SQL) write(b *Builder, _ string, known []Fragments)     { b.expand(string(p), known) }
func (p Raw) write(b *Builder, _ string, _ []Fragments)         { b.WriteString(string(p)) }
func (p Func) write(b *Builder, argument string, _ []Fragments) { b.WriteString(p(argument)) }
func (p value) write(b *Builder, _ string, _ []Fragments)       { b.Arg(p.any) }

// Render writes a statement. A query is [Whole]. See [Builder.SQL].
func Render(d Dialect, text string, pieces ...Fragments) (statement string, args []any) {
	b := Builder{Dialect: d}
	b.SQL(text, pieces...)
	return Whole(d, b.String()), b.Args()
}

// SQL writes a template, in which names in braces stand for fragments. The first map with a name decides, and the
// dialect's vocabulary is last. An unknown name panics: programmers write templates, never users.
func (b *Builder) SQL(text string, pieces ...Fragments) {
	b.expand(text, append(pieces[:len(pieces):len(pieces)], b.Dialect.Capabilities().Vocabulary))
}

func (b *Builder) expand(text string, known []Fragments) {
	for {
		before, inner, after, found := cutFragment(text)
		b.WriteString(before)
		if !found {
			return
		}
		name, argument, _ := strings.Cut(inner, " ")
		find(name, known).write(b, b.argument(argument, known), known)
		text = after
	}
}

// argument expands the argument of a Func. The arguments of its placeholders are added to b.
func (b *Builder) argument(text string, known []Fragments) string {
	if strings.IndexByte(text, '{') < 0 {
		return text
	}
	inner := Builder{Dialect: b.Dialect, args: b.args}
	inner.expand(text, known)
	b.args = inner.args
	return inner.String()
}

func find(name string, known []Fragments) Fragment {
	for _, pieces := range known {
		if p, ok := pieces[name]; ok {
			return p
		}
	}
	panic("sqltext: no piece is named {" + name + "}")
}

// cutFragment finds the first fragment of text, and returns the inside of its braces.
func cutFragment(text string) (before, inner, after string, found bool) {
	for start := 0; start+1 < len(text); start++ {
		if text[start] != '{' || text[start+1] < 'a' || text[start+1] > 'z' {
			continue
		}
		depth := 0
		for end := start; end < len(text); end++ {
			switch text[end] {
			case '{':
				depth++
			case '}':
				depth--
			}
			if depth == 0 {
				return text[:start], text[start+1 : end], text[end+1:], true
			}
		}
		break
	}
	return text, "", "", false
}
