package verify

// A Database asks one database's catalogue: [Postgres], [SQLite] or [MySQL]. The rows of its
// queries are texts, in an order that doesn't change from one time to the next.
type Database interface {
	// Quote writes a name so that the database reads just that, and Text a constant.
	Quote(name string) string
	Text(s string) string

	// same returns a text that is the same for two names exactly if the database takes them for
	// the same, of tables and of columns.
	same(name string) string

	// word reads a name as it stands in stored code, with its quotes.
	word(s string) string

	// relations returns what has one of the names, in any schema. Names are as same has them.
	relations(l *look, names []string) ([]*relation, error)

	// columns returns the columns of relations: the relation's id, and the column.
	columns(l *look, of []*relation) (map[string][]column, error)

	// similar returns the names of the tables that the role can see.
	similar(l *look) ([]string, error)

	// links returns what writes relations, or is written with them, without being told so.
	links(l *look, of []*relation) ([]link, error)

	// keys returns what the rows of relations are unique, found, linked or divided by, by their ids.
	keys(l *look, of []*relation) (map[string][]key, error)

	// code returns the stored code that has one of the words in it.
	code(l *look, words []string) ([]code, error)

	// settings returns what the session's settings are called and have.
	settings(l *look) (map[string]string, error)

	// writers returns who else may write relations: the relation's id, and the roles.
	writers(l *look, of []*relation) (map[string][]string, error)

	// unsealers returns who may write past the seals of relations, by privileges that writers don't
	// need, and how.
	unsealers(l *look, of []*relation) (who map[string][]string, how string, err error)

	// seals returns what seals tables, by their relations' ids; only for those that have some part of a seal.
	seals(l *look, of []target) (map[string]seals, error)

	// cascadesFire reports whether what a foreign key does to other rows fires their triggers.
	cascadesFire() bool

	// unfit says what is wrong with the table of the ledger, beside its columns; empty for
	// nothing.
	unfit(l *look, ledger *relation) (string, error)

	// unkept says what is wrong with the triggers that keep the ledger's tokens and names; empty for
	// nothing, or where the role can't see it.
	unkept(l *look, ledger *relation) (string, error)

	// otherFunction returns the name of the ledger's function if it isn't what Setup creates.
	otherFunction(l *look, ledger *relation) (string, error)

	// isRowNumber reports whether a column that the table hasn't is another name for its
	// primary key.
	isRowNumber(rel *relation, column string) bool

	// mark and the others judge the type of a column.
	mark(c column) judgement
	serial(c column) judgement
	key(c column) judgement
	lock(c column, time bool) judgement

	// storage judges how a table is kept, which is more than its kind.
	storage(l *look, rel *relation) judgement

	// checkSession looks at the settings.
	checkSession(l *look, settings map[string]string)

	// alter is the statement that gives a column another declaration; empty where there is none.
	alter(table, column, declare string) string

	// setsDefaults reports whether a column that is there can be given a default.
	setsDefaults() bool

	// lockTypes are the types of the columns of a lock.
	lockTypes() (user, time string)

	// keepsLedgers reports whether each schema has a ledger of its own, for its tables.
	keepsLedgers() bool

	// length returns how long the database takes a name in the ledger to be.
	length(s string) int

	// writesJoined reports whether an UPDATE or DELETE may write any of the tables that it joins.
	writesJoined() bool

	// CreateLedger creates the ledger's table.
	CreateLedger() string

	// placed returns a statement about the ledger with its table in a schema, if that isn't empty.
	placed(schema, text string) string

	// SchemaWords are what messages call a schema, and where the session finds names without one.
	SchemaWords() (schema, path string)

	// OneApplication reports whether the schemas that a session sees are, as a rule, one application's.
	OneApplication() bool

	// LockPrivilege is the privilege on the ledger that a guard takes beside SELECT; empty for none.
	LockPrivilege() string
}

// A judgement is what is wrong with something; without a problem it is right.
type judgement struct {
	severity             Severity
	problem, remedy, sql string
}

var fine judgement

func fault(problem string) judgement   { return judgement{severity: Fault, problem: problem} }
func warning(problem string) judgement { return judgement{severity: Warning, problem: problem} }

// A relation is a table, or something else that has a table's name.
type relation struct {
	id, schema, name string
	visible          bool   // it is what the name without a schema stands for
	kind             string // "table", "partitioned table", "view" and so on
	storage          string // PostgreSQL: "unlogged", "temporary"; MySQL: the engine
	definition       string // SQLite: the text that created it
	columns          []column
	sealed           bool // the database refuses writes without a token
	remote           bool // some of its rows are another server's

	// What the role may do with some column of it, or with its rows.
	writes, deletes bool
	owned           bool // the role may alter it
}

// A column is one of a relation.
type column struct {
	name, typ, shown string // typ without the length and such, and of a domain's base; shown as it is declared
	nullable         bool
	fallback         string // its default; empty for none
	generated        bool   // by the database, of other columns or as an identity
	computed         bool   // of other columns
	loose            bool   // texts that are not the same count as equal
	strict           bool   // MySQL: the session refuses a number that doesn't fit
	reads            bool   // the role may
	inserts, updates bool
}

// column returns the column with a name, and whether there is one.
func (r *relation) column(db Database, name string) (column, bool) {
	for _, c := range r.columns {
		if db.same(c.name) == db.same(name) {
			return c, true
		}
	}
	return column{}, false
}

// A link is a way by which rows of a relation can be written although the statement doesn't
// name it.
type link struct {
	code, id     string // of the finding, and of the relation
	schema, name string // of the other thing
	detail       string // what the problem has to say of it
}

// code is a function, trigger or the like that the database keeps.
type code struct {
	kind, name string   // for people
	bare       string   // its name alone
	fires      []string // relations that a trigger is on: their ids
	on         string   // likewise, for people
	home       string   // the schema in which it finds names without one; empty if that isn't known
	body       string   // empty if it can't be seen
	hidden     bool     // it can't
}
