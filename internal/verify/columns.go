package verify

import (
	"fmt"
	"strings"
)

// readColumns reads the columns of all relations that matter.
func readColumns(l *look) error {
	of := l.guarded()
	for _, ledger := range l.ledgers {
		if len(l.of(ledger.id)) == 0 {
			of = append(of, ledger)
		}
	}
	if len(of) == 0 {
		return nil
	}
	columns, err := l.db.columns(l, of)
	if err != nil {
		return err
	}
	for _, rel := range of {
		rel.columns = columns[rel.id]
	}
	return nil
}

// A use is a column of a registered table with what its rule needs of it.
type use struct {
	target
	role, name string // "fence" and so on, and the column
	declare    string // as in ALTER TABLE ... ADD COLUMN; empty for a column of the application's
	judge      func(column) judgement
	is         column
}

// uses returns the columns that the rules of a table name.
func (l *look) uses(t target) []use {
	user, time := l.db.lockTypes()
	all := []use{
		{t, "fence", t.Fence, "bigint NOT NULL DEFAULT 0", l.db.mark, column{}},
		{t, "serial", t.Serial, "bigint NOT NULL DEFAULT 1", l.db.serial, column{}},
		{t, "key", t.Key, "", l.db.key, column{}},
		{t, "lock", t.By, user, func(c column) judgement { return l.db.lock(c, false) }, column{}},
		{t, "lock", t.Since, time, func(c column) judgement { return l.db.lock(c, true) }, column{}},
		{t, "lock", t.Expiry, time, func(c column) judgement { return l.db.lock(c, true) }, column{}},
	}
	var used []use
	for _, u := range all {
		if u.name != "" {
			used = append(used, u)
		}
	}
	return used
}

// checkColumns looks at the columns that rules name.
func checkColumns(l *look) error {
	for _, t := range l.targets {
		for _, u := range l.uses(t) {
			c, ok := t.rel.column(l.db, u.name)
			switch {
			case !ok && l.db.isRowNumber(t.rel, u.name) && u.role == "key":
			case !ok:
				l.missingColumn(u)
			default:
				u.is = c
				l.judgeColumn(u)
			}
		}
	}
	return nil
}

func (l *look) missingColumn(u use) {
	known := make([]string, len(u.rel.columns))
	for i, c := range u.rel.columns {
		known[i] = c.name
	}
	f := Finding{
		Severity: Fault,
		Code:     "missing-column",
		Problem: fmt.Sprintf("The table %s has no column %s, or this role can't see it: the %s column of its registration.",
			l.name(u.rel), quoteIfNeeded(l.db, u.name), u.role),
		Remedy: didYouMean(u.name, known) + "Register the column that the table has.",
	}
	if u.declare != "" {
		add := "Add the column"
		if u.role == "fence" {
			add += " (by schema.AddFence or sqlfence add-fence --apply if programs are using the table)"
		}
		f.Remedy = didYouMean(u.name, known) + add + ", or register the one that the table has."
		f.SQL = "ALTER TABLE " + l.quoted(u.rel) + " ADD COLUMN " + l.db.Quote(u.name) + " " + u.declare
	}
	l.add(u.Table, f)
}

// judgeColumn looks at the type of a column and at what new rows get there.
func (l *look) judgeColumn(u use) {
	named := "The " + u.role + " column " + quoteIfNeeded(l.db, u.name) + " of table " + l.name(u.rel)
	counts := u.role == "fence" || u.role == "serial"
	if counts && u.is.generated {
		l.add(u.Table, Finding{Severity: Fault, Code: "generated-column", Problem: named + " is computed by the database, so that no write can store it.",
			Remedy: "Register a column of its own."})
		return
	}
	if u.role == "key" && u.is.computed {
		l.add(u.Table, Finding{Severity: Warning, Code: "generated-column", Problem: named + " is computed of other columns: an UPDATE of those moves a row out of its token's scope, which no statement shows.",
			Remedy: "Choose another column as the key."})
	}
	if j := u.judge(u.is); j.problem != "" {
		f := Finding{Severity: j.severity, Code: u.role + "-type", Problem: named + " is of the type " + u.is.shown + ": " + j.problem + ".",
			Remedy: "Choose another column as the key."}
		if u.declare != "" {
			typ, _, _ := strings.Cut(u.declare, " ")
			f.Remedy = "Register another column, or make it " + typ + "; writers wait while the table is written anew."
			f.SQL = l.db.alter(l.quoted(u.rel), l.db.Quote(u.is.name), u.declare)
		}
		l.add(u.Table, f)
		return
	}
	if u.role == "fence" && strings.HasSuffix(u.rel.kind, "table") {
		l.checkDefault(u, named)
	}
}

// checkDefault looks at the mark of rows that are added without a token.
func (l *look) checkDefault(u use, named string) {
	const toZero = "Give it the default 0."
	var set string
	if l.db.setsDefaults() {
		set = "ALTER TABLE " + l.quoted(u.rel) + " ALTER COLUMN " + l.db.Quote(u.is.name) + " SET DEFAULT 0"
	}
	switch value := strings.Trim(u.is.fallback, "'()"); {
	case value == "0" || strings.HasPrefix(value, "0'::"):
	case value != "" && !strings.EqualFold(value, "null"):
		l.add(u.Table, Finding{Severity: Warning, Code: "fence-default", SQL: set, Remedy: toZero,
			Problem: named + " has the default " + u.is.fallback + ": rows that are added without a token refuse all tokens below it."})
	case u.is.nullable:
		l.add(u.Table, Finding{Code: "nullable-fence", SQL: set, Remedy: "Nothing has to be done; give it the default 0 if other programs read it.",
			Problem: named + " may be NULL, which counts as 0: rows that are added without a token have no mark."})
	case u.UnfencedInserts:
		l.add(u.Table, Finding{Severity: Fault, Code: "fence-default", SQL: set, Remedy: toZero,
			Problem: named + " is NOT NULL and has no default, so that new rows without a token, which UnfencedInserts allows, fail."})
	default:
		l.add(u.Table, Finding{Code: "fence-default", SQL: set, Remedy: toZero + " Nothing has to be done if every program that adds rows is fenced.",
			Problem: named + " is NOT NULL and has no default, so that rows which are added without a token fail."})
	}
}
