package catalogue

import (
	"log/slog"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Database is the kind of database to query: [Postgres], [SQLite] or [MySQL].
type Database struct {
	sqltext.Dialect

	// known holds the database's properties outside the catalogue.
	known *dialect.Database

	// same normalizes the name of a table or a column: two names have equal results exactly if the database treats the
	// names as equal.
	same func(name string) string

	// length returns the length of a name in the ledger, as the database counts it.
	length func(s string) int

	user string // the required type of EditLock's column for the lock's holder

	silentCascades fact.Fact // a foreign key's changes to other rows fire no triggers
	refusesViews   fact.Fact // a write through a view fails if its guard reads columns

	// The rows of the following queries are texts, in an order that is the same each time.

	// relations returns the relations with one of the names, in any schema. Names are normalized by same.
	relations func(l *look, names []string) []*relation

	queries     func(l *look) []query // further queries about the relations that were found
	tableNames  func(l *look) string  // a query for the names of the tables that the role can see
	fencedNames func(l *look) string  // a query for the names of the tables with a fence column or a seal

	// judge judges the type of a column by the column's role: "fence", "serial", "claim", "key", or "user" or "time"
	// for a column of EditLock.
	judge func(role string, c column) judgement

	storage func(l *look, rel *relation) judgement // judges how a table is stored, such as its engine
	session func(l *look)                          // checks the settings of the server and the session

	// seal reads a table's seal, even an incomplete one; has is false if the table has no part of a seal. seal is nil
	// if the database has no seals.
	seal func(l *look, t target) (s seals, has bool)

	pastSeals string // how a role with more privileges can write past a seal, for messages

	// alter returns the statement that changes a column's declaration; nil if no statement can change a declaration.
	alter func(table, column, declare string) string
}

// databases are the kinds of databases, by their dialects.
var databases = [...]Database{dialect.Postgres: Postgres, dialect.SQLite: SQLite, dialect.MySQL: MySQL}

func newDatabase(d dialect.Dialect, db Database) Database {
	known, err := dialect.Of(d)
	if err != nil {
		panic(err)
	}
	db.Dialect, db.known = known.Text, known
	return db
}

// ownLedgers reports whether each schema has a separate ledger for its tables.
func (db *Database) ownLedgers() bool { return db.known.Guard.OwnLedgers.Is() }

// writesJoined reports whether an UPDATE or DELETE may write any of the tables that it joins.
func (db *Database) writesJoined() bool { return db.known.Grammar.QualifiedSet.Is() }

func (db *Database) rules() *lex.Rules { return db.known.Grammar.Lex }

// A judgement describes a defect. An empty problem means no defect.
type judgement struct {
	level                slog.Level
	problem, remedy, sql string
}

var fine judgement

func defect(problem string) judgement  { return judgement{level: Fault, problem: problem} }
func warning(problem string) judgement { return judgement{level: Warning, problem: problem} }

// A relation is a table, a view or another object that shares the namespace of tables.
type relation struct {
	id, schema, name string
	visible          bool   // the session finds the relation by its name without a schema
	kind             string // "table", "partitioned table", "view" and so on
	storage          string // PostgreSQL: "unlogged", "temporary"; MySQL: the engine
	partition        bool   // the relation is a partition, with the columns of its table
	definition       text   // SQLite: the statement that created the relation
	columns          []column
	writes, deletes  bool // the role may write some column of the relation, or delete its rows
	remote           bool // some of the relation's rows are on another server

	seal    [][]string // rows of the query about the relation's seal
	sealed  bool       // the database refuses writes without a token
	writers []string   // other roles that may write the relation
	past    []string   // roles that may write past the relation's seal

	// defects are the ledger's faults by kind: "unfit" for a table that can't be a ledger; "unkept" and "unrecorded"
	// for missing or changed triggers, which keep tokens from falling or record who changes each token; "no function"
	// for a missing function of the guards; "function" and "procedure" for those that Setup didn't create in this form.
	defects       map[string][]string
	triggers      map[string]string // the definitions of the ledger's triggers, by name
	hidesTriggers bool              // the role can't see the ledger's triggers
}

// A column is a column of a relation.
type column struct {
	name, typ, shown string // typ is the type, or a domain's base type, without its length; shown is the declared type
	nullable         bool
	fallback         string // the default value; empty if the column has none
	generated        bool   // the database generates the value, from other columns or as an identity
	computed         bool   // the database computes the value from other columns
	loose            bool   // the column's collation treats some different texts as equal
	strict           bool   // MySQL: the session refuses a number that the type can't store
	reads            bool   // the role may read the column
	inserts, updates bool
}

func (r *relation) column(db *Database, name string) (column, bool) {
	for _, c := range r.columns {
		if db.same(c.name) == db.same(name) {
			return c, true
		}
	}
	return column{}, false
}

func hearColumn(l *look, r []string) {
	is := func(i int) bool { return r[i] == "1" || r[i] == "true" }
	c := column{name: r[1], typ: r[2], shown: r[3], nullable: is(4), fallback: r[5], generated: r[6] != "",
		computed: r[6] == "computed", loose: is(7), reads: is(8), inserts: is(9), updates: is(10), strict: is(11)}
	rel := l.relation(r[0])
	rel.columns = append(rel.columns, c)
	rel.writes = rel.writes || c.inserts || c.updates
}

func hearSetting(l *look, r []string) { l.settings[strings.ToLower(r[0])] = r[1] }

func hearTrigger(l *look, r []string) {
	rel := l.relation(r[0])
	if rel.triggers == nil {
		rel.triggers = make(map[string]string)
	}
	rel.triggers[r[1]] = r[2]
}

func hearLedger(l *look, r []string) { l.relation(r[0]).fault(r[1], r[2]) }

func (r *relation) fault(kind, what string) {
	if r.defects == nil {
		r.defects = make(map[string][]string)
	}
	if what != "" {
		r.defects[kind] = append(r.defects[kind], what)
	}
}

func hearSeal(l *look, r []string) {
	rel := l.relation(r[0])
	rel.seal = append(rel.seal, r[1:])
}
