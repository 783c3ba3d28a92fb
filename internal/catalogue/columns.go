package catalogue

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/similar"
)

// A use is a column of a registered table, with the requirements of its rule.
type use struct {
	target
	role, name string // the role for judge, and the column's name
	declare    string // the declaration for ALTER TABLE ... ADD COLUMN; empty for a column of the application
}

func (l *look) uses(t target) []use {
	all := []use{
		{t, "fence", t.FenceColumn, "bigint NOT NULL DEFAULT 0"},
		{t, "serial", t.Serial, "bigint NOT NULL DEFAULT 1"},
		{t, "claim", t.Claim, "bigint NOT NULL DEFAULT 0"},
		{t, "key", t.Key, ""},
		{t, "user", t.Lock.By, l.db.user},
		{t, "time", t.Lock.Since, l.db.known.Errors.TimeType},
		{t, "time", t.Lock.Expiry, l.db.known.Errors.TimeType},
	}
	return slices.DeleteFunc(all, func(u use) bool { return u.name == "" })
}

// column returns the column's name in messages, from its role.
func (u use) column() string {
	if u.role == "user" || u.role == "time" {
		return "lock column"
	}
	return u.role + " column"
}

func checkColumns(l *look) {
	for _, t := range l.targets {
		for _, u := range l.uses(t) {
			c, ok := t.rel.column(l.db, u.name)
			switch {
			case ok:
				u.name = c.name
				l.judgeColumn(u, c)
			case u.role != "key" || !slices.Contains(l.db.known.Guard.RowNumbers, l.db.same(u.name)) ||
				t.rel.definition.find("without", "rowid") >= 0:
				l.missingColumn(u)
			}
		}
	}
}

func (l *look) missingColumn(u use) {
	known := make([]string, len(u.rel.columns))
	for i, c := range u.rel.columns {
		known[i] = c.name
	}
	f := Finding{
		Level: Fault,
		Code:  "missing-column",
		Problem: "The table " + l.name(u.rel) + " has no column " + l.quoteIfNeeded(u.name) + ", or this role can't " +
			"see it: the " + u.column() + " of its registration.",
		Remedy: similar.Propose(u.name, known) + Remedies["missing-column"],
	}
	if u.declare != "" {
		add := "Add the column"
		if u.role == "fence" {
			add += " (schema.AddFence or sqlfence add-fence --apply if programs are using the table)"
		}
		f.Remedy = similar.Propose(u.name, known) + add + ", or register the one that the table has."
		f.SQL = "ALTER TABLE " + l.quoted(u.rel) + " ADD COLUMN " + l.db.Quote(u.name) + " " + u.declare
	}
	l.add(u.Table, f)
}

// judgeColumn checks the type of a column, and the value that the column gets in new rows.
func (l *look) judgeColumn(u use, c column) {
	named := "The " + u.column() + " " + l.quoteIfNeeded(u.name) + " of table " + l.name(u.rel)
	wrong := func(level slog.Level, problem, remedy, sql string) {
		l.add(u.Table, Finding{level, "wrong-column", "", named + " " + problem + ".", remedy, sql})
	}
	const another = "Choose another column as the key."
	switch j := l.db.judge(u.role, c); {
	case c.generated && (u.role == "fence" || u.role == "serial" || u.role == "claim"):
		wrong(Fault, "is computed by the database, so that no write can store it", "Register a column of its own.", "")
		return
	case c.computed && u.role == "key":
		wrong(Warning, "is computed of other columns: an UPDATE of those moves a row out of its token's scope, "+
			"which no statement shows", another, "")
		fallthrough
	default:
		problem := "is of the type " + c.shown + ": " + j.problem
		switch typ, _, _ := strings.Cut(u.declare, " "); {
		case j.problem == "" && u.role == "fence" && strings.HasSuffix(u.rel.kind, "table"):
			l.checkDefault(u, c, wrong)
		case j.problem == "":
		case u.declare == "":
			wrong(j.level, problem, another, "")
		default:
			var sql string
			if l.db.alter != nil {
				sql = l.db.alter(l.quoted(u.rel), l.db.Quote(c.name), u.declare)
			}
			wrong(j.level, problem, "Register another column, or make it "+typ+"; writers wait while the table is "+
				"written anew.", sql)
		}
	}
}

// checkDefault checks the stored token of rows that are inserted without a token.
func (l *look) checkDefault(u use, c column, wrong func(level slog.Level, problem, remedy, sql string)) {
	const toZero = "Give it the default 0."
	var set string
	if l.db.alter != nil {
		set = "ALTER TABLE " + l.quoted(u.rel) + " ALTER COLUMN " + l.db.Quote(c.name) + " SET DEFAULT 0"
	}
	switch value := strings.Trim(c.fallback, "'()"); {
	case value == "0" || strings.HasPrefix(value, "0'::"):
	case value != "" && !strings.EqualFold(value, "null"):
		wrong(Warning, "has the default "+c.fallback+": rows that are added without a token refuse all tokens below "+
			"it", toZero, set)
	case c.nullable:
		wrong(Note, "may be NULL, which counts as 0: rows that are added without a token have no mark",
			"Nothing has to be done; give it the default 0 if other programs read it.", set)
	case u.UnfencedInserts:
		wrong(Fault, "is NOT NULL and has no default, so that new rows without a token, which UnfencedInserts allows, "+
			"fail", toZero, set)
	default:
		wrong(Note, "is NOT NULL and has no default, so that rows which are added without a token fail",
			toZero+" Nothing has to be done if every program that adds rows is fenced.", set)
	}
}

// A key is a unique constraint, index, foreign key or partition key of a relation.
type key struct {
	id, kind, name string // the relation's id; the kind as "primary key", "unique index", "index"
	columns        []string
	reads          string // the texts of its expressions and its condition
}

// hearKey adds a column of a key. The rows of one key follow one another.
func hearKey(l *look, r []string) {
	same := func(k key) bool { return k.id == r[0] && k.kind == r[1] && k.name == r[2] }
	if last := len(l.keys) - 1; last < 0 || !same(l.keys[last]) {
		l.keys = append(l.keys, key{id: r[0], kind: r[1], name: r[2]})
	}
	k := &l.keys[len(l.keys)-1]
	k.columns = append(k.columns, r[3])
	k.reads += " " + r[4]
}

// checkKeys looks for fence columns that are part of a key, because a guard would change the key of each row that a
// statement writes.
func checkKeys(l *look) {
	for _, t := range l.targets {
		if t.ClaimOf != "" {
			l.checkClaimKey(t)
		}
		isFence := func(column string) bool { return l.db.same(column) == l.db.same(t.FenceColumn) }
		for _, k := range l.keys {
			if t.FenceColumn == "" || k.id != t.rel.id {
				continue
			}
			named := strings.TrimSpace(k.kind + " " + l.quoteIfNeeded(k.name))
			f := Finding{Level: Warning, Code: "wrong-column",
				Problem: "The fence column " + l.quoteIfNeeded(t.FenceColumn) + " of table " + l.name(t.rel)}
			switch inside := slices.ContainsFunc(k.columns, isFence); {
			case inside && k.kind != "index":
				f.Problem += " is in the " + named + ": each guarded write gives the row the token as its mark, " +
					"and so another key, which two rows with one token may share."
				f.Remedy = "Register a column of its own."
			case inside || !l.db.text(k.reads).names()[l.db.same(t.FenceColumn)]:
				continue
			default:
				f.Problem += " is read by the " + named + ": a guarded write may put the row into it, or take it " +
					"out, or give it another place there."
				f.Remedy = "Don't let it depend on the mark; a row that isn't in it isn't unique by it."
				if k.kind == "index" {
					f.Level, f.Remedy = Note, "Nothing has to be done, if no query relies on it."
				}
			}
			l.add(t.Table, f)
		}
	}
}

// checkClaimKey reports a key column without an index in the table that t.ClaimOf names: the guard of each write to t
// looks up the row with its claim there, and would read the whole table.
func (l *look) checkClaimKey(t target) {
	for _, of := range l.targets {
		if of.Registered != t.ClaimOf || of.Key == "" || of.rel.kind == "view" {
			continue
		}
		finds := func(k key) bool {
			return k.id == of.rel.id && k.kind != "foreign key" && l.db.same(k.columns[0]) == l.db.same(of.Key)
		}
		if c, ok := of.rel.column(l.db, of.Key); ok && !slices.ContainsFunc(l.keys, finds) {
			l.add(t.Table, Finding{
				Level: Warning,
				Code:  "wrong-column",
				Problem: "The key column " + l.quoteIfNeeded(c.name) + " of table " + l.name(of.rel) +
					" begins no index: each write of table " +
					l.name(t.rel) + " reads all of its rows for the claim.",
				Remedy: "Make it the primary key, or give it a unique index.",
				SQL: "CREATE UNIQUE INDEX " + l.db.Quote(of.rel.name+"_"+c.name) + " ON " + l.quoted(of.rel) +
					" (" + l.db.Quote(c.name) + ")",
			})
		}
	}
}

// refusesView reports whether the database would refuse guarded writes to t, because t is a view or a foreign table and
// its guards read its columns.
func (l *look) refusesView(t target) bool {
	return l.db.refusesViews.Is() && (t.rel.kind == "view" || t.rel.kind == "foreign table") && len(l.uses(t)) > 0
}

// checkStorage checks registered names of relations that aren't ordinary tables.
func checkStorage(l *look) {
	for _, t := range l.targets {
		f := Finding{Level: Warning, Code: "storage",
			Problem: "The registered name " + l.name(t.rel) + " is a " + t.rel.kind}
		switch t.rel.kind {
		case "table", "partitioned table":
			j := l.db.storage(l, t.rel)
			if j.problem == "" {
				continue
			}
			f = Finding{j.level, f.Code, "", "The table " + l.name(t.rel) + " " + j.problem + ".", j.remedy, j.sql}
		case "foreign table":
			t.rel.remote = true
			f.Problem += ", and its rows are on another server: no guard and no seal checks the writes there."
			f.Remedy = "Connect to that server, and register the table there."
		default:
			f.Problem += ": its rows are those of other tables, which can be written without it."
			f.Remedy = "Register the tables behind it."
		}
		if l.refusesView(t) {
			f.Level = Fault
			f.Problem += " Its columns needn't be those of the rows, so that every guarded write is refused."
		}
		l.add(t.Table, f)
	}
}
