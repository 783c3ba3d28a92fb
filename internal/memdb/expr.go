package memdb

import (
	"database/sql/driver"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An expr computes a value from what is in scope.
type expr func(*scope) driver.Value

// A scope is what an expression sees: a row of each source, and what is around it.
type scope struct {
	*execution
	sources []source
	outer   *scope
	group   []*scope // the rows that an aggregate is about
}

type source struct {
	name    string
	columns []column
	row     []driver.Value
}

// A reference names a column, of a table if that is not empty.
type reference struct{ table, name string }

func (r reference) find(s *scope) (*source, int) {
	for ; s != nil; s = s.outer {
		for i := range s.sources {
			if r.table != "" && r.table != s.sources[i].name {
				continue
			}
			at := slices.IndexFunc(s.sources[i].columns, func(c column) bool { return c.name == r.name })
			if at >= 0 {
				return &s.sources[i], at
			}
		}
	}
	panic(errorf("no such column: %s", r.name))
}

func (r reference) value(s *scope) driver.Value {
	from, i := r.find(s)
	return from.row[i]
}

func constant(v driver.Value) expr { return func(*scope) driver.Value { return v } }

// expr parses an expression of all operators.
func (p *parser) expr() expr { return p.or() }

func (p *parser) or() expr {
	left := p.and()
	for p.word("OR") {
		a, b := left, p.and()
		left = func(s *scope) driver.Value { return boolean(isTrue(a(s)) || isTrue(b(s))) }
	}
	return left
}

// and parses AND, which doesn't look at its right if the left is false.
func (p *parser) and() expr {
	left := p.not()
	for p.word("AND") {
		a, b := left, p.not()
		left = func(s *scope) driver.Value {
			v := a(s)
			if isFalse(v) {
				return v
			}
			w := b(s)
			if isFalse(w) || v != nil {
				return w
			}
			return nil
		}
	}
	return left
}

func (p *parser) not() expr {
	if p.word("NOT") {
		e := p.not()
		return func(s *scope) driver.Value {
			v := e(s)
			if v == nil {
				return nil
			}
			return boolean(!isTrue(v))
		}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	left := p.binary(0)
	switch {
	case p.word("IS"):
		not := p.word("NOT")
		p.need("NULL")
		return func(s *scope) driver.Value { return boolean((left(s) == nil) != not) }
	case p.word("BETWEEN"):
		low := p.binary(0)
		p.need("AND")
		high := p.binary(0)
		return func(s *scope) driver.Value {
			v := left(s)
			return boolean(compare(v, low(s)) >= 0 && compare(v, high(s)) <= 0)
		}
	}
	return left
}

// operators are those of two values, from the loosest to the tightest.
var operators = [][]string{{"=", "<>", "!=", "<", "<=", ">", ">="}, {"+", "-"}, {"*", "/"}, {"||"}}

func (p *parser) binary(level int) expr {
	if level == len(operators) {
		return p.unary()
	}
	left := p.binary(level + 1)
	for p.peek().kind == 'o' && slices.Contains(operators[level], p.peek().text) {
		op := p.next().text
		a, b := left, p.binary(level+1)
		left = func(s *scope) driver.Value {
			v, w := a(s), b(s)
			if v == nil || w == nil {
				return nil
			}
			return calculate(op, v, w)
		}
	}
	return left
}

func (p *parser) unary() expr {
	if p.op("-") {
		e := p.unary()
		return func(s *scope) driver.Value { return calculate("-", int64(0), e(s)) }
	}
	e := p.primary()
	if p.word("COLLATE") {
		p.next()
	}
	return e
}

func (p *parser) primary() expr {
	t := p.next()
	switch {
	case t.kind == 's':
		return constant(t.text)
	case t.kind == 'n':
		if n, err := strconv.ParseInt(t.text, 10, 64); err == nil {
			return constant(n)
		}
		n, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			panic(errorf("bad number %s", t.text))
		}
		return constant(n)
	case t.kind == 'p':
		n := p.placeholder(t.text)
		return func(s *scope) driver.Value { return s.args[n-1] }
	case t.kind == 'o' && t.text == "(":
		return p.parenthesis()
	case t.kind == 'w' && t.text == "NULL":
		return constant(nil)
	case t.kind == 'w' && t.text == "TRUE":
		return constant(int64(1))
	case t.kind == 'w' && t.text == "CASE":
		return p.cases()
	case t.kind == 'w' && p.op("("):
		return p.call(t.text)
	case t.kind == 'w' && !reserved[t.text] || t.kind == 'q':
		r := reference{name: t.name()}
		if p.op(".") {
			r = reference{table: r.name, name: p.name()}
		}
		p.reference = &r
		return r.value
	}
	panic(p.unexpected(t))
}

// parenthesis parses what follows a parenthesis: an expression or a query, of
// which one with WITH isn't read but takes seconds.
func (p *parser) parenthesis() expr {
	var e expr
	switch {
	case p.at("WITH"):
		for depth := 1; depth > 0; {
			switch t := p.next(); {
			case t.kind == 0:
				panic(p.unexpected(t))
			case t.text == "(" && t.kind == 'o':
				depth++
			case t.text == ")" && t.kind == 'o':
				depth--
			}
		}
		return func(s *scope) driver.Value { return s.pause(10 * time.Second) }
	case p.at("SELECT"):
		q := p.query()
		e = func(s *scope) driver.Value {
			if rows := q.run(s).all(); len(rows) > 0 {
				return rows[0][0]
			}
			return nil
		}
	default:
		e = p.expr()
	}
	p.needOp(")")
	return e
}

func (p *parser) cases() expr {
	type branch struct{ when, then expr }
	var subject, otherwise expr
	var branches []branch
	if !p.at("WHEN") {
		subject = p.expr()
	}
	for p.word("WHEN") {
		when := p.expr()
		p.need("THEN")
		branches = append(branches, branch{when, p.expr()})
	}
	otherwise = constant(nil)
	if p.word("ELSE") {
		otherwise = p.expr()
	}
	p.need("END")
	return func(s *scope) driver.Value {
		for _, b := range branches {
			v := b.when(s)
			if subject == nil && isTrue(v) || subject != nil && v != nil && compare(subject(s), v) == 0 {
				return b.then(s)
			}
		}
		return otherwise(s)
	}
}

// call parses the arguments of a function.
func (p *parser) call(function string) expr {
	if function == "COUNT" {
		p.needOp("*")
		p.needOp(")")
		if p.word("OVER") {
			p.needOp("(")
			p.needOp(")")
		} else {
			p.aggregate = true
		}
		return func(s *scope) driver.Value { return int64(len(s.group)) }
	}
	if function == "CAST" {
		e := p.expr()
		p.need("AS")
		typ := p.next().text
		p.needOp(")")
		return func(s *scope) driver.Value { return cast(e(s), typ) }
	}
	var args []expr
	for !p.op(")") {
		args = append(args, p.expr())
		if !p.op(",") && !p.isOp(")") {
			panic(p.unexpected(p.peek()))
		}
	}
	if function == "MAX" && len(args) == 1 {
		p.aggregate = true
		return func(s *scope) driver.Value {
			var highest driver.Value
			for _, row := range s.group {
				if v := args[0](row); v != nil && (highest == nil || compare(v, highest) > 0) {
					highest = v
				}
			}
			return highest
		}
	}
	f, ok := functions[function]
	if !ok {
		panic(errorf("no such function: %s", strings.ToLower(function)))
	}
	return func(s *scope) driver.Value { return f(s, args) }
}

// cast converts a value to INTEGER or TEXT.
func cast(v driver.Value, typ string) driver.Value {
	switch {
	case v == nil:
		return nil
	case typ == "TEXT":
		return textOf(v)
	}
	if text, ok := v.(string); ok {
		n, _ := strconv.ParseFloat(text, 64) // text that is no number is 0
		return int64(n)
	}
	return int64(number(v))
}

// abs returns an integer without its sign; the lowest has none.
func abs(v driver.Value) driver.Value {
	n, ok := v.(int64)
	switch {
	case !ok || n >= 0:
		return v
	case n == math.MinInt64:
		panic(errorf("integer overflow"))
	}
	return -n
}

// The functions may leave arguments unread.
var functions = map[string]func(*scope, []expr) driver.Value{
	"COALESCE": func(s *scope, args []expr) driver.Value {
		for _, arg := range args {
			if v := arg(s); v != nil {
				return v
			}
		}
		return nil
	},
	// JSON_EXTRACT has no path that it can read.
	"JSON_EXTRACT": func(s *scope, args []expr) driver.Value {
		panic(errorf("bad JSON path: '%s'", textOf(args[1](s))))
	},
	// JULIANDAY knows only the time now, which it counts in days, to the millisecond.
	"JULIANDAY": func(*scope, []expr) driver.Value {
		return float64(time.Now().UnixMilli())/86400000 + 2440587.5
	},
	"ROUND":  func(s *scope, args []expr) driver.Value { return math.Round(number(args[0](s))) },
	"LENGTH": func(s *scope, args []expr) driver.Value { return int64(len([]rune(textOf(args[0](s))))) },
	"SUBSTR": func(s *scope, args []expr) driver.Value {
		text := []rune(textOf(args[0](s)))
		from, n := int(number(args[1](s)))-1, int(number(args[2](s)))
		return string(text[min(from, len(text)):min(from+n, len(text))])
	},
	"ABS":      func(s *scope, args []expr) driver.Value { return abs(args[0](s)) },
	"LOWER":    func(s *scope, args []expr) driver.Value { return strings.ToLower(textOf(args[0](s))) },
	"DATABASE": func(*scope, []expr) driver.Value { return "fake" },
	"SLEEP": func(s *scope, args []expr) driver.Value {
		return s.pause(time.Duration(number(args[0](s)) * float64(time.Second)))
	},
	"MAX": func(s *scope, args []expr) driver.Value {
		highest := driver.Value(int64(math.MinInt64))
		for _, arg := range args {
			v := arg(s)
			if v == nil {
				return nil
			}
			if compare(v, highest) > 0 {
				highest = v
			}
		}
		return highest
	},
}
