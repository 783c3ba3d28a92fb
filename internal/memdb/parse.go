package memdb

import (
	"slices"
	"strconv"
	"strings"
)

// A script is what one text holds.
type script struct {
	statements []statement
	names      []string // of the placeholders, with the character before it; empty if it has none
}

// parse reads a text. What the fake doesn't know is a syntax error.
func parse(text string) (s *script, err error) {
	defer caught(&err)
	p := &parser{text: text, tokens: lex(text), script: &script{}}
	for p.peek().kind != 0 {
		if p.op(";") {
			continue
		}
		s := p.statement()
		if !p.isOp(";") && p.peek().kind != 0 {
			panic(p.unexpected(p.peek()))
		}
		p.statements = append(p.statements, s)
	}
	return p.script, nil
}

type parser struct {
	*script
	text      string
	tokens    []token
	aggregate bool       // the query has an aggregate function
	reference *reference // the one read last
	named     []string   // the tables that were named
}

// reserved can't be names.
var reserved = map[string]bool{}

func init() {
	for _, w := range strings.Fields(`SELECT FROM WHERE ORDER BY AND OR NOT AS SET VALUES ON RETURNING
		CASE WHEN THEN ELSE END IS NULL BETWEEN WITH INSERT UPDATE DELETE COLLATE LEFT JOIN`) {
		reserved[w] = true
	}
}

func (p *parser) peek() token {
	if len(p.tokens) == 0 {
		return token{start: len(p.text), end: len(p.text)}
	}
	return p.tokens[0]
}

func (p *parser) next() token {
	t := p.peek()
	if len(p.tokens) > 0 {
		p.tokens = p.tokens[1:]
	}
	return t
}

// at reports whether a word comes next, and word also takes it.
func (p *parser) at(word string) bool { t := p.peek(); return t.kind == 'w' && t.text == word }
func (p *parser) word(word string) bool {
	if p.at(word) {
		p.next()
		return true
	}
	return false
}

// isOp reports whether an operator comes next, and op also takes it.
func (p *parser) isOp(op string) bool { t := p.peek(); return t.kind == 'o' && t.text == op }
func (p *parser) op(op string) bool {
	if p.isOp(op) {
		p.next()
		return true
	}
	return false
}

// need takes the words, which have to come.
func (p *parser) need(words ...string) {
	for _, word := range words {
		if !p.word(word) {
			panic(p.unexpected(p.peek()))
		}
	}
}

func (p *parser) needOp(op string) {
	if !p.op(op) {
		panic(p.unexpected(p.peek()))
	}
}

func (p *parser) unexpected(t token) failure {
	if t.kind == 0 {
		return errorf("incomplete input")
	}
	return errorf("near %q: syntax error", p.text[t.start:t.end])
}

// name returns a name in the form that it is compared in.
func (t token) name() string {
	if t.kind == 'w' {
		return strings.ToLower(t.text)
	}
	return t.text
}

func (p *parser) name() string {
	t := p.next()
	if t.kind == 'q' || t.kind == 'w' && !reserved[t.text] {
		return t.name()
	}
	panic(p.unexpected(t))
}

// nameList takes a list of names in parentheses, if there is one.
func (p *parser) nameList() (names []string) {
	if !p.op("(") {
		return nil
	}
	for {
		names = append(names, p.name())
		if !p.op(",") {
			p.needOp(")")
			return names
		}
	}
}

// alias takes a new name, if there is one.
func (p *parser) alias(without string) string {
	if p.word("AS") {
		return p.name()
	}
	if t := p.peek(); t.kind == 'q' || t.kind == 'w' && !reserved[t.text] {
		return p.name()
	}
	return without
}

// placeholder returns the number of a placeholder: ?N has its own, ? and a new
// name the next.
func (p *parser) placeholder(text string) int {
	if n, err := strconv.Atoi(text[1:]); err == nil && text[0] == '?' {
		for len(p.script.names) < n {
			p.script.names = append(p.script.names, "")
		}
		return n
	}
	if i := slices.Index(p.script.names, text); i >= 0 && text != "?" {
		return i + 1
	}
	if text == "?" {
		text = ""
	}
	p.script.names = append(p.script.names, text)
	return len(p.script.names)
}

// exprs takes expressions with commas between them.
func (p *parser) exprs() (list []expr) {
	for {
		list = append(list, p.expr())
		if !p.op(",") {
			return list
		}
	}
}
