package rewrite

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/sql/confirm"
	"github.com/sqlfence/sqlfence/internal/sql/read"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// postgres is PostgreSQL. What the guard calls is named with its schema, and casts and
// operators that an application can make are left alone: a cast of its own from text
// to bigint might give NULL where the built-in function raises.
//
// PostgreSQL evaluates an expression without columns while planning, so what raises has
// to depend on one.
type postgres struct {
	sqltext.Dialect

	// ledgerHome is the schema, quoted, of the function that asks the ledger; empty for
	// guards that ask by themselves.
	ledgerHome string

	ledgerPlace
}

func (postgres) secondLook() *confirm.Dialect { return pg.Confirm }

func (postgres) grammar() *read.Grammar { return pg.Grammar }

// searches: U&"\0062ooks" spells any name. DO names nothing, nor does what changes the
// encoding of later statements. In the code of DO and CALL a name may be a part of a word.
func (postgres) searches(s *search, tables []Table) {
	s.findSpelled()
	s.findNamesWith("call")
	if len(tables) == 0 {
		s.findCode(part)
		return
	}
	s.findCode(complete)
	s.find("client_encoding", noTable)
	s.findWord("names") // SET NAMES
	for _, word := range append([]string{sqltext.TriggerSetting, "schema", "owned", "plpgsql"}, setterNames...) {
		s.findWord(word)
	}
}

func (postgres) ground() *ground { return postgresGround }

var postgresGround = &ground{code: "plpgsql", home: "public", cascades: true, setting: postgresSetting, setters: setterNames, unseen: postgresUnseen}

// maxInputs: they are counted in two bytes.
func (postgres) maxInputs() int { return 65535 }

func (d postgres) maxAdded() int { return d.maxInputs() }

func (d postgres) maxNumbered() int { return d.maxInputs() }

func (postgres) numbersInputs() bool { return true }

func (postgres) size() (before, behind string) {
	return "pg_catalog.int8abs(GREATEST(COALESCE(", ", 0), -9223372036854775807))"
}

func (postgres) lacksComparison(err error) bool {
	return slices.ContainsFunc([]string{"int8le", "int8lt", "int8eq", "int8abs"}, func(function string) bool {
		return dberr.NamesFunction(err, "pg_catalog."+function)
	})
}

func (postgres) keyText() (before, behind string) { return "", `::text COLLATE "C"` }

// claimText: concat alone would make a text of a key that is NULL.
func (postgres) claimText() (before, between, behind string) {
	return "pg_catalog.textcat(", ", pg_catalog.concat(':', ", "))"
}

// compares: the functions take integers only. Compared with a column of a floating
// type, a token is equal to those near it.
func (postgres) compares(c comparison) (before, between, behind string) {
	return [...]string{equal: "pg_catalog.int8eq(", less: "pg_catalog.int8lt(", lessOrEqual: "pg_catalog.int8le("}[c], ", ", ")"
}

func (postgres) greatest() (before, between, behind string) { return "GREATEST(", ", ", ")" }

func (postgres) unsealable() string { return "" }

// proveDelete: the setting is the transaction's, and is cleared before each statement.
func (postgres) proveDelete(w *writer) {
	w.write("pg_catalog.set_config('" + sqltext.DeleteSetting(w.rules.Name) + "', pg_catalog.concat(")
	w.provenTokens()
	w.write("), true) IS NOT NULL")
}

// assigns: a condition would compare a number with a record.
func (postgres) assigns() (before, between, behind string) { return "(", ") = ROW(", ")" }

func (postgres) setsInOrder() bool { return false }

func (postgres) notInteger() (before, behind string) { return "", "" }

func (postgres) assigned() (before, between, behind string) { return "COALESCE((", "), ", ")::bigint" }

func (postgres) asInteger() string { return "::bigint" }

func (postgres) definesTables(string) bool { return false }

func (postgres) isRowNumber(string) bool { return false }

func (postgres) keyReturner() string { return "" }

func (postgres) declaresConflicts() bool { return false }

func (postgres) readsWith() bool { return false }

func (postgres) skipsLocked() bool { return true }

func (postgres) writesInWith() bool { return true }

func (postgres) checksBeyondLimit() bool { return false }

func (postgres) sortsAside() bool { return false }

func (postgres) rowCounter() string { return "" }

func (postgres) findsDatesByNull() bool { return false }

func (postgres) tellsCases() bool { return false }

func (postgres) countsLastRows() bool { return false }

func (postgres) guardsSeveral() bool { return true }

// shadowsLedger: a WITH inside of another may have an item of the name that the guard
// gives to the ledger's check. The raises inside of it would ask that one.
func (postgres) shadowsLedger(item string) bool {
	return item == ledgerTable || strings.HasPrefix(item, ledgerItem)
}

func (postgres) ledgerInWhere() bool { return false }

func (postgres) ledgerInRow() bool { return false }

func (postgres) readsNewRow() bool { return false }

func (postgres) upsertSeesQuery() bool { return false }

func (postgres) upsert(columns []string) string { return onConflict(columns) }

// onConflict is the clause of PostgreSQL and SQLite.
func onConflict(columns []string) string {
	if len(columns) == 0 {
		return "ON CONFLICT"
	}
	return "ON CONFLICT (<what is unique>) DO UPDATE SET " + assigned(columns, func(column string) string { return "excluded." + column })
}

// assigned is a list of assignments for a message; three are enough.
func assigned(columns []string, value func(column string) string) string {
	var all []string
	for i, column := range columns {
		if i == 3 {
			all = append(all, "…")
			break
		}
		all = append(all, column+" = "+value(column))
	}
	return strings.Join(all, ", ")
}

func (p postgres) withLedgerSchema(schema string) dialect {
	p.ledgerPlace = ledgerPlace(p.Quote(schema) + ".")
	return p
}

func (p postgres) withLedgerFunction(schema string) dialect {
	p.ledgerHome = p.Quote(schema)
	return p
}

// ledgerCheck takes its turn first, a lock that is granted in the order of the requests: shared
// locks of a row are not, and writers with transactions that overlap could hold off the next token
// for ever.
//
// It compares what it has locked, not what the snapshot shows: a newer token than the
// snapshot's is a serialization failure, which says nothing against the token.
func (p postgres) ledgerCheck(w *writer, token int) {
	if p.ledgerHome != "" {
		p.callLedger(w, token)
		return
	}
	const held = "COALESCE(held.token, 0)"
	ofName := func() {
		w.write(p.ledgerName(), " WHERE "+ledgerTable+".name = ")
		w.field(token, fieldName)
	}
	w.write("COALESCE((SELECT CASE WHEN ")
	w.compare(equal, token, held)
	w.write(" THEN true ELSE ")
	w.raiseCondition(markerLedger, token, held)
	before, behind := w.dialect.Turning(true)
	w.write(" END FROM (SELECT "+ledgerTable+".token FROM (SELECT ", before)
	w.field(token, fieldName)
	w.write(behind, " OFFSET 0) AS turn, ")
	ofName()
	w.write(" FOR SHARE OF " + ledgerTable + ") AS held), (SELECT ")
	w.raiseCondition(markerUnknown, token, "pg_catalog.count(*)")
	w.write(" FROM ")
	ofName()
	w.write("))")
}

// callLedger has the function do the same. It is named with its schema, and its arguments
// are of the types that it is declared with, so that no other function can take its place;
// it gets the table that the statement would ask. As a query of its own it is called once,
// whether the ledger has a row for the name or not.
func (p postgres) callLedger(w *writer, token int) {
	w.write("COALESCE((SELECT ", p.ledgerHome, "."+sqltext.LedgerFunction+"(")
	w.typedField(token, fieldName)
	w.write(", ")
	w.typedField(token, fieldValue)
	w.write(", ")
	w.b.Int(int64(token))
	w.write(", '", w.nonce, "'::text, ", p.Text(p.ledgerName()), "::pg_catalog.regclass)), false)")
}

// ledgerFirst: PostgreSQL evaluates a condition without columns before it reads a row.
func (p postgres) ledgerFirst(w *writer, token int) {
	p.ledgerNewer(w, token)
	w.write(" IS NULL")
}

// ledgerTail: an offset is evaluated first, and NULL is none.
func (p postgres) ledgerTail(w *writer) {
	w.write(" OFFSET (")
	for i := w.lo; i < w.hi; i++ {
		if i > w.lo {
			w.write(" + ")
		}
		p.ledgerNewer(w, i)
	}
	w.write(")")
}

func (postgres) seeksFirst() bool { return false }

// claimsCheck compares what it has locked, as ledgerCheck does. It takes no turn: only the workers with
// these claims share the lock, so that no crowd of them holds off a takeover for ever.
func (p postgres) claimsCheck(w *writer) {
	row := w.claimedColumns()
	w.write("(SELECT ")
	w.compareClaims(claimColumns{key: `held.key COLLATE "C"`, claim: "held.claim"})
	w.write(" FROM (SELECT ", row.key, " AS key, ", row.claim, " AS claim FROM ")
	w.claimedRows()
	w.write(" FOR SHARE OF " + claimed + ") AS held)")
}

// claimsFirst locks the rows before the statement's own are read, as the check is evaluated once; so it doesn't
// matter whether the statement changes them.
func (postgres) claimsFirst(w *writer) {
	if w.asksAlone {
		w.dialect.claimsCheck(w)
		return
	}
	w.write("(SELECT newest FROM ")
	w.ledgerItem(w.lo)
	w.write(")")
}

// claimsTail: an offset is evaluated first, and NULL is none.
func (postgres) claimsTail(w *writer) {
	w.write(" OFFSET (SELECT CASE WHEN NOT newest THEN 0 END FROM ")
	w.ledgerItem(w.lo)
	w.write(")")
}

func (postgres) builtIn(function string) string { return "pg_catalog." + strings.ToLower(function) }

func (postgres) claimsBesideTarget() bool { return false }

// ledgerNewer takes no turn and locks nothing: the statement may still have to wait for rows.
// Only the snapshot that has a newer token says something of this one: an older token may be
// the snapshot's age.
func (p postgres) ledgerNewer(w *writer, token int) {
	const stored = ledgerTable + ".token"
	w.write("(SELECT ")
	w.raise(markerLedger, token, stored)
	w.write(" FROM ", p.ledgerName(), " WHERE "+ledgerTable+".name = ")
	w.field(token, fieldName)
	w.write(" AND NOT ")
	w.compare(lessOrEqual, token, stored)
	w.write(")")
}
