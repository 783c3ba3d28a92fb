package memdb

import (
	"database/sql/driver"
	"slices"
	"strings"
)

// A statement is one of a script. Control statements begin and end transactions
// and have nothing to run.
type statement struct {
	control string
	writes  bool
	run     func(*scope) *result
}

func (p *parser) statement() statement {
	t := p.peek()
	if t.kind != 'w' {
		panic(p.unexpected(t))
	}
	switch t.text {
	case "SELECT":
		return statement{run: p.query().run}
	case "INSERT":
		return statement{writes: true, run: p.insert()}
	case "UPDATE":
		return statement{writes: true, run: p.update()}
	case "DELETE":
		return statement{writes: true, run: p.delete()}
	case "CREATE", "DROP", "ALTER":
		return statement{writes: true, run: p.define()}
	case "EXPLAIN":
		return statement{run: p.explain()}
	case "BEGIN", "COMMIT", "ROLLBACK":
		return statement{control: p.next().text}
	}
	panic(p.unexpected(t))
}

// explain takes EXPLAIN and a statement, which isn't run; its tables have to be there.
func (p *parser) explain() func(*scope) *result {
	p.next()
	p.named = nil
	p.statement()
	named := p.named
	return func(s *scope) *result {
		for _, name := range named {
			s.table(name)
		}
		return &result{}
	}
}

// table takes the name of a table to write to.
func (p *parser) table() string {
	name := p.name()
	p.named = append(p.named, name)
	return name
}

// An assignment is column = expression.
type assignment struct {
	column string
	value  expr
}

// assignments takes SET and what follows.
func (p *parser) assignments() (all []assignment) {
	p.need("SET")
	for {
		column := p.name()
		p.needOp("=")
		all = append(all, assignment{column, p.expr()})
		if !p.op(",") {
			return all
		}
	}
}

// assign returns a row with the assignments made.
func assign(s *scope, t *table, row []driver.Value, all []assignment) []driver.Value {
	changed := slices.Clone(row)
	for _, a := range all {
		changed[t.index(a.column)] = a.value(s)
	}
	return changed
}

// returning takes RETURNING, if it is there.
func (p *parser) returning() []item {
	if p.word("RETURNING") {
		return p.items()
	}
	return nil
}

// answer returns the result of a statement that has written these rows.
func answer(s *scope, t *table, alias string, items []item, written [][]driver.Value) *result {
	r := &result{affected: int64(len(written))}
	if items == nil {
		return r
	}
	on := scope{execution: s.execution, sources: []source{{name: alias, columns: t.columns}}}
	r.columns = resultColumns(&on, items)
	for _, row := range written {
		on.sources[0].row = row
		r.rows = append(r.rows, project(&on, items))
	}
	return r
}

// orAbort takes what to do about a conflict: nothing else than without it.
func (p *parser) orAbort() {
	if p.word("OR") {
		p.need("ABORT")
	}
}

func (p *parser) update() func(*scope) *result {
	p.need("UPDATE")
	p.orAbort()
	name := p.table()
	alias := name
	if !p.at("SET") {
		alias = p.alias(name)
	}
	set := p.assignments()
	beside := func(*scope) source { return source{} }
	if p.word("FROM") {
		beside = p.oneRow()
	}
	where, returning := p.condition(), p.returning()
	return func(s *scope) *result {
		t, other := s.table(name), beside(s)
		var written [][]driver.Value
		for i, row := range t.rows {
			on := &scope{execution: s.execution, sources: []source{{alias, t.columns, row}, other}}
			if isTrue(where(on)) {
				t.put(i, assign(on, t, row, set))
				written = append(written, t.rows[i])
			}
		}
		return answer(s, t, alias, returning, written)
	}
}

// oneRow takes what an UPDATE reads from besides, which has to be one row.
func (p *parser) oneRow() func(*scope) source {
	f := p.from()
	return func(s *scope) source {
		columns, rows := f.rows(s)
		if len(rows) != 1 {
			panic(errorf("UPDATE from %d rows, want one", len(rows)))
		}
		return source{f.alias, columns, rows[0]}
	}
}

func (p *parser) delete() func(*scope) *result {
	p.need("DELETE", "FROM")
	name := p.table()
	alias := p.alias(name)
	where, returning := p.condition(), p.returning()
	return func(s *scope) *result {
		t := s.table(name)
		var kept, written [][]driver.Value
		for _, row := range t.rows {
			on := &scope{execution: s.execution, sources: []source{{alias, t.columns, row}}}
			if isTrue(where(on)) {
				written = append(written, row)
			} else {
				kept = append(kept, row)
			}
		}
		t.rows = kept
		return answer(s, t, alias, returning, written)
	}
}

// An upsert is what ON CONFLICT says.
type upsert struct {
	columns []string
	set     []assignment // none for DO NOTHING
	where   expr
}

func (p *parser) upsert() *upsert {
	if !p.word("ON") {
		return nil
	}
	p.need("CONFLICT")
	u := &upsert{columns: p.nameList()}
	p.need("DO")
	if p.word("NOTHING") {
		return u
	}
	p.need("UPDATE")
	u.set, u.where = p.assignments(), p.condition()
	return u
}

func (p *parser) insert() func(*scope) *result {
	p.need("INSERT")
	p.orAbort()
	p.need("INTO")
	name := p.table()
	alias := name
	if p.word("AS") {
		alias = p.name()
	}
	names := p.nameList()
	rows, onConflict, returning := p.query(), p.upsert(), p.returning()
	return func(s *scope) *result {
		t := s.table(name)
		var written [][]driver.Value
		for _, values := range rows.run(s).all() {
			row := t.fresh(names, values)
			at := -1
			if onConflict != nil {
				at = t.same(row, onConflict.columns)
			}
			if at < 0 {
				at = len(t.rows)
			} else {
				on := &scope{execution: s.execution, sources: []source{{alias, t.columns, t.rows[at]}, {"excluded", t.columns, row}}}
				if onConflict.set == nil || !isTrue(onConflict.where(on)) {
					continue
				}
				row = assign(on, t, t.rows[at], onConflict.set)
			}
			t.put(at, row)
			s.inserted(row)
			written = append(written, row)
		}
		return answer(s, t, alias, returning, written)
	}
}

// define parses CREATE TABLE, CREATE INDEX, DROP TABLE and ALTER TABLE ADD COLUMN.
func (p *parser) define() func(*scope) *result {
	kind := p.next().text
	if kind == "CREATE" && p.word("INDEX") {
		return p.createIndex()
	}
	p.need("TABLE")
	unlessThere := p.word("IF")
	if unlessThere {
		p.need("NOT", "EXISTS")
	}
	name := p.name()
	switch kind {
	case "DROP":
		return func(s *scope) *result { s.table(name); delete(s.tables, name); return &result{} }
	case "ALTER":
		p.need("ADD", "COLUMN")
		added := p.column()
		return func(s *scope) *result { s.table(name).add(added); return &result{} }
	}
	var columns []column
	for p.needOp("("); ; p.needOp(",") {
		columns = append(columns, p.column())
		if p.op(")") {
			break
		}
	}
	return func(s *scope) *result {
		if s.tables[name] == nil {
			s.tables[name] = &table{name: name, columns: columns}
		} else if !unlessThere {
			panic(errorf("table %s already exists", name))
		}
		return &result{}
	}
}

// createIndex takes what follows CREATE INDEX. The index has a name, and no effect.
func (p *parser) createIndex() func(*scope) *result {
	p.need("IF", "NOT", "EXISTS")
	name := p.name()
	p.need("ON")
	on, columns := p.table(), p.nameList()
	return func(s *scope) *result {
		t := s.table(on)
		for _, c := range columns {
			t.index(c)
		}
		if !slices.Contains(t.indexes, name) {
			t.indexes = append(slices.Clip(t.indexes), name)
		}
		return &result{}
	}
}

// column parses the definition of a column.
func (p *parser) column() column {
	c := column{name: p.name()}
	for {
		switch t := p.peek(); {
		case p.word("PRIMARY"):
			p.need("KEY")
			c.primary, c.unique = true, true
		case p.word("UNIQUE"):
			c.unique = true
		case p.word("NOT"):
			p.need("NULL")
			c.notNull = true
		case p.word("DEFAULT"):
			c.otherwise = p.primary()(nil)
		case p.op("("):
			for _, size := range p.exprs() {
				c.sizes = append(c.sizes, size(nil).(int64))
			}
			p.needOp(")")
		case t.kind == 'w':
			c.typ = strings.TrimSpace(c.typ + " " + p.name())
		default:
			return c
		}
	}
}
