package rewrite

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/guard"
)

// isComplete reports whether the claims' table has a name, a key and a claim.
func isComplete(c *guard.Claims) bool { return c.Name != "" && c.Key != "" && c.Claim != "" }

// claimedColumns returns the columns where the table is read.
func (w *writer) claimedColumns() guard.ClaimColumns {
	before, behind := w.dialect.guard.KeyText.Ends()
	c := &w.rules.ClaimOf
	return guard.ClaimColumns{
		Key:   before + guard.ClaimedTable + "." + w.dialect.Quote(c.Key) + behind,
		Claim: "COALESCE(" + guard.ClaimedTable + "." + w.dialect.Quote(c.Claim) + ", 0)",
	}
}

// claimedRows writes the table of the claims and the condition for the rows that the tokens name, for a FROM.
// The column itself finds them by its index, whatever its type and collation make equal; of these its text
// leaves the ones with that very key.
func (w *writer) claimedRows() {
	w.write(w.claimsTable(), " WHERE "+guard.ClaimedTable+".", w.dialect.Quote(w.rules.ClaimOf.Key))
	w.write(" IN (")
	w.listTokens(fieldRow)
	w.write(") AND ", w.claimedColumns().Key)
	w.amongTokens(fieldKey)
}

// claimsTable returns the table of the claims, with its alias.
func (w *writer) claimsTable() string {
	c, schema := &w.rules.ClaimOf, ""
	switch {
	case c.Schema != "":
		schema = w.dialect.Quote(c.Schema) + "."
	case w.dialect.guard.OwnLedgers.Is():
		schema = w.target.schema
	}
	return schema + w.dialect.Quote(c.Name) + " AS " + guard.ClaimedTable
}

// amongTokens writes the list that a field of the tokens is in.
func (w *writer) amongTokens(f field) {
	if w.dialect.Facts().BuiltIn == "" {
		w.write(" IN (")
		w.listTokens(f)
		w.write(")")
		return
	}
	w.operator("=")
	w.write("ANY (ARRAY[")
	w.listTokens(f)
	w.write("])")
}

// listTokens writes a field of each token, with commas between them.
func (w *writer) listTokens(f field) {
	for i := w.lo; i < w.hi; i++ {
		if i > w.lo {
			w.write(", ")
		}
		w.field(i, f)
	}
}

// mostNamed is the highest number of tokens where the one of a row that is gone is named: the rows are counted for
// each of them.
const mostNamed = 8

// compareClaims writes the condition, over the rows that were found, that is true if each token names one of
// them, and all are of the tokens' generations; else it raises with one that isn't, or with a row that is gone.
func (w *writer) compareClaims(row guard.ClaimColumns) {
	before, between, behind := w.dialect.guard.ClaimText.Parts()
	min, count := w.dialect.builtIn("MIN"), w.dialect.builtIn("COUNT")
	proved := func() {
		w.write(before, row.Key, between, row.Claim, behind)
		w.amongTokens(fieldClaim)
	}
	w.write("CASE WHEN ", min, "(CASE WHEN ")
	proved()
	w.write(" THEN 1 ELSE 0 END)")
	w.operator("=")
	w.write("1")
	if n := w.hi - w.lo; n > 1 {
		w.write(" AND ", count, "(DISTINCT ", row.Key, ")")
		w.operator("=")
		w.b.Int(int64(n))
	}
	w.write(" THEN ")
	w.bool(true)
	w.write(" ELSE ")
	w.raising(byClaim, w.lo, func() {
		w.write("COALESCE(", min, "(CASE WHEN ")
		proved()
		w.write(" THEN NULL ELSE ", before)
		w.eachToken(func(i int) { w.same(row.Key, i, fieldKey) })
		w.write(between, row.Claim, behind, " END), ", before)
		if w.hi-w.lo > mostNamed {
			w.write(w.dialect.Text("-1"))
		} else {
			w.eachToken(func(i int) {
				w.write(count, "(CASE WHEN ")
				w.same(row.Key, i, fieldKey)
				w.write(" THEN 1 END)")
				w.operator("=")
				w.write("0")
			})
		}
		w.write(between, w.dialect.Text(goneRow), behind, ")")
	})
	w.write(" IS NOT NULL END")
}

// eachToken writes a CASE with the number of the token, as a text, for which a condition holds; of the last one
// where none does.
func (w *writer) eachToken(condition func(token int)) {
	text := func(i int) string { return w.dialect.Text(strconv.Itoa(i)) }
	if w.hi == w.lo+1 {
		w.write(text(w.lo))
		return
	}
	w.write("CASE")
	for i := w.lo; i < w.hi-1; i++ {
		w.write(" WHEN ")
		condition(i)
		w.write(" THEN ", text(i))
	}
	w.write(" ELSE ", text(w.hi-1), " END")
}

// findsClaims refuses a statement, which has the targets from first on, where the guard wouldn't find the claims of a
// table: the statement gives its name to an item of WITH, or writes it.
func (p *planner) findsClaims(first int) bool {
	for _, t := range p.targets[first:] {
		table := p.written[t.Table]
		c := &p.rulesOf(table).ClaimOf
		if c.Name == "" {
			continue
		}
		if at := p.commonTable(c.Name); at >= 0 && c.Schema == "" {
			return p.refuse(table, at, "a CTE named "+c.Name+" would shadow the table with the claims; rename the CTE")
		}
		for i := range p.Writes {
			if w := &p.Writes[i]; w.Target.Name == c.Name {
				return p.refuse(table, w.At, "it also writes table "+c.Name+
					", which has the claims; write two statements in "+
					"one transaction")
			}
		}
	}
	return true
}

// commonTable returns the token at which an item of WITH gets a name, or -1. It may be anywhere in the statement: a
// guard also stands in the query that an INSERT takes its rows from, which may have a WITH of its own.
//
//	name [(columns)] AS [[NOT] MATERIALIZED] (
func (p *planner) commonTable(name string) int32 {
	for i := p.Lo; i < p.Hi; i++ {
		if n, ok := p.Name(int(i)); !ok || n != name {
			continue
		}
		at := i + 1
		if p.Tokens[at].Is('(') {
			at = p.Tokens[at].Mate + 1
		}
		if at < p.Hi && p.Word(at, "as") && (p.Tokens[at+1].Is('(') || p.Word(at+1, "not", "materialized")) {
			return i
		}
	}
	return -1
}

// same compares an expression with a field of a token.
func (w *writer) same(expression string, token int, f field) {
	w.write(expression)
	w.operator("=")
	w.field(token, f)
}

// operator writes an operator of the database's between two expressions, so that none of the application's takes its
// place. Where it is qualified, all operators bind alike.
func (w *writer) operator(op string) {
	if builtIn := w.dialect.Facts().BuiltIn; builtIn != "" {
		w.write(" OPERATOR(", builtIn, op, ") ")
	} else {
		w.write(" ", op, " ")
	}
}

// builtIn names a function of the database's, so that none of the application's takes its place.
func (d *dialect) builtIn(function string) string {
	if d.Facts().BuiltIn == "" {
		return function
	}
	return d.Facts().BuiltIn + strings.ToLower(function)
}

// keepsClaims refuses a statement that gives the name of a table with claims to a temporary one, which the guard
// would find instead: in MySQL also where it names the table's schema.
func (p ground) keepsClaims(name string, at int32) bool {
	for i := range p.tables {
		if of := p.tables[i].ClaimOf.Name; of != "" && of == name {
			return p.refuse(i, at, "a table of this name would stand before the one with the claims; "+
				"give it another name")
		}
	}
	return true
}

// claimsInOneFile returns an error if a table and the one with its claims may be in two files. Each has a writer of
// its own: a takeover could be committed between the guard's question and the write's commit.
func claimsInOneFile(tables []registered) error {
	for i := range tables {
		if t := &tables[i]; t.ClaimsOther() && t.ClaimOf.Schema != t.Schema {
			return fmt.Errorf("table %q: ClaimOf holds within one file; give both tables the same "+
				"schema, or none", t.Name)
		}
	}
	return nil
}
