package memdb

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A query is a SELECT or VALUES.
type query struct {
	values    [][]expr
	items     []item
	from      []from
	where     expr
	order     expr
	aggregate bool
}

// An item is a column of a result; all of them if expr is nil.
type item struct {
	expr
	name string
	of   *reference // the column that it is, if it is one
}

// A from is where rows come from: a table, a query, or a function.
type from struct {
	name, alias string
	query       *query
	argument    expr
	on          expr // of a LEFT JOIN; else nil
}

func (p *parser) query() *query {
	q := &query{}
	if p.word("VALUES") {
		for {
			p.needOp("(")
			q.values = append(q.values, p.exprs())
			p.needOp(")")
			if !p.op(",") {
				return q
			}
		}
	}
	p.need("SELECT")
	outer := p.aggregate
	p.aggregate = false
	q.items = p.items()
	q.aggregate, p.aggregate = p.aggregate, outer
	if p.word("FROM") {
		q.from = p.froms()
	}
	q.where = p.condition()
	if p.word("ORDER") {
		p.need("BY")
		q.order = p.expr()
	}
	return q
}

// condition takes WHERE, if it is there.
func (p *parser) condition() expr {
	if p.word("WHERE") {
		return p.expr()
	}
	return constant(int64(1))
}

func (p *parser) items() (items []item) {
	for {
		i := item{}
		if start := p.peek().start; !p.op("*") {
			p.reference = nil
			first := len(p.tokens)
			i.expr = p.expr()
			if first-len(p.tokens) == 1 {
				i.of = p.reference
			}
			i.name = p.alias(strings.TrimSpace(p.text[start:p.peek().start]))
		}
		items = append(items, i)
		if !p.op(",") {
			return items
		}
	}
}

// froms takes what rows come from, with commas or LEFT JOIN between them.
func (p *parser) froms() (all []from) {
	all = append(all, p.from())
	for {
		switch {
		case p.op(","):
			all = append(all, p.from())
		case p.word("LEFT"):
			p.need("JOIN")
			f := p.from()
			p.need("ON")
			f.on = p.expr()
			all = append(all, f)
		default:
			return all
		}
	}
}

func (p *parser) from() from {
	if p.op("(") {
		q := p.query()
		p.needOp(")")
		return from{query: q, alias: p.alias("")}
	}
	f := from{name: p.name()}
	if p.op("(") {
		f.argument = p.expr()
		p.needOp(")")
	} else {
		p.named = append(p.named, f.name)
	}
	f.alias = p.alias(f.name)
	return f
}

// rows returns what a query reads from.
func (f from) rows(s *scope) ([]column, [][]driver.Value) {
	switch {
	case f.query != nil:
		r := f.query.run(s)
		return r.columns, r.all()
	case f.argument == nil:
		t := s.table(f.name)
		return t.columns, t.rows
	}
	argument := textOf(f.argument(s))
	var rows [][]driver.Value
	switch f.name {
	case "json_each":
		var values []string
		if err := json.Unmarshal([]byte(argument), &values); err != nil {
			panic(errorf("malformed JSON"))
		}
		for _, v := range values {
			rows = append(rows, []driver.Value{v})
		}
		return columnsNamed("value"), rows
	case "pragma_table_info":
		if t := s.tables[argument]; t != nil {
			for _, c := range t.columns {
				rows = append(rows, []driver.Value{c.name, c.typ, boolean(c.notNull), c.otherwise, boolean(c.primary)})
			}
		}
		return columnsNamed("name", "type", "notnull", "dflt_value", "pk"), rows
	case "pragma_index_list":
		if t := s.tables[argument]; t != nil {
			for _, name := range t.indexes {
				rows = append(rows, []driver.Value{name})
			}
		}
		return columnsNamed("name"), rows
	}
	panic(errorf("no such function: %s", f.name))
}

func columnsNamed(names ...string) (columns []column) {
	for _, name := range names {
		columns = append(columns, column{name: name})
	}
	return columns
}

// run computes the rows. What fails in the items comes after the rows before it.
func (q *query) run(outer *scope) (r *result) {
	if q.values != nil {
		r = &result{columns: make([]column, len(q.values[0]))}
		for i := range r.columns {
			r.columns[i].name = fmt.Sprint("column", i+1)
		}
		for _, exprs := range q.values {
			r.rows = append(r.rows, evaluate(outer, exprs))
		}
		return r
	}
	s := scope{execution: outer.execution, outer: outer}
	var rows [][][]driver.Value // of each source
	for _, f := range q.from {
		columns, all := f.rows(outer)
		s.sources = append(s.sources, source{f.alias, columns, nil})
		rows = append(rows, all)
	}
	var matched []*scope
	var join func(at int)
	join = func(at int) {
		if at == len(rows) {
			one := s
			one.sources = slices.Clone(s.sources)
			if isTrue(q.where(&one)) {
				matched = append(matched, &one)
			}
			return
		}
		on, joined := q.from[at].on, false
		for _, row := range rows[at] {
			s.sources[at].row = row
			if on == nil || isTrue(on(&s)) {
				joined = true
				join(at + 1)
			}
		}
		if on != nil && !joined {
			s.sources[at].row = make([]driver.Value, len(s.sources[at].columns))
			join(at + 1)
		}
	}
	join(0)
	if q.order != nil {
		slices.SortStableFunc(matched, func(a, b *scope) int { return compare(q.order(a), q.order(b)) })
	}
	group := matched
	if q.aggregate {
		matched = []*scope{{execution: outer.execution, outer: outer}}
	}
	r = &result{columns: resultColumns(&s, q.items)}
	defer caught(&r.err)
	for _, one := range matched {
		one.group = group
		r.rows = append(r.rows, project(one, q.items))
	}
	return r
}

func evaluate(s *scope, exprs []expr) []driver.Value {
	row := make([]driver.Value, len(exprs))
	for i, e := range exprs {
		row[i] = e(s)
	}
	return row
}

func resultColumns(s *scope, items []item) (columns []column) {
	for _, i := range items {
		switch {
		case i.expr == nil:
			for _, from := range s.sources {
				columns = append(columns, from.columns...)
			}
		case i.of != nil:
			from, at := i.of.find(s)
			c := from.columns[at]
			c.name = i.name
			columns = append(columns, c)
		default:
			columns = append(columns, column{name: i.name})
		}
	}
	return columns
}

func project(s *scope, items []item) (row []driver.Value) {
	for _, i := range items {
		if i.expr == nil {
			for _, from := range s.sources {
				row = append(row, from.row...)
			}
		} else {
			row = append(row, i.expr(s))
		}
	}
	return row
}
