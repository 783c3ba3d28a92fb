package orm_test

import (
	"slices"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// What ORMs are asked to do.

// An ormOperation is one of them.
type ormOperation struct {
	name string

	reads  bool // needs no token
	spares bool // reaches no row that is there already: a row fence has nothing to compare
	fails  bool // returns an error also on the base driver alone

	creates bool // inserts a row, and leaves the primary key to the database

	// The model names the fence column and writes it: refused where that is a
	// row fence's.
	writesMark bool
}

func (op ormOperation) changes() bool { return !op.reads && !op.fails && op.name != opMissing }

// verdict is what the table of docs/data/compatibility.md says.
func (op ormOperation) verdict(o orm, b harness.Base, passed bool) string {
	switch {
	case !passed:
		return "**no**"
	case op.writesMark:
		return "refused ³"
	}
	verdict := "yes"
	only, assigned := ormAssigned[o.name][op.name]
	if assigned && only != "" && !op.listsKey(o, b) {
		verdict += " ¹"
	}
	if op.creates || slices.Contains(ormRefused[o.name], op.name) {
		verdict += " ²"
	}
	if assigned && only == "" {
		verdict += " ⁴"
	}
	if _, assigned := ormAssignedID[o.name][op.name]; assigned {
		verdict += " ⁵"
	}
	if op.listsKey(o, b) {
		verdict += " ⁶"
	}
	return verdict
}

// listsKey tells whether the operation is one of ormListed on this driver.
func (op ormOperation) listsKey(o orm, b harness.Base) bool {
	return b.Dialect == sqlfence.Postgres && slices.Contains(ormListed[o.name], op.name)
}

const ormNotes = `
¹ The statement assigns all columns but the primary key. With a ` + "`Key`" + ` by one of them, the context must hold the token
of the record, and no other token of the table. Otherwise: ErrUnguardable, "it assigns the key column".

² Refused with a ` + "`Key`" + ` by a column that the database fills in, such as an identity column: the key is unknown before
the statement runs. With ` + "`UnfencedInserts`" + ` a new row needs no token, and the statement is guarded. An upsert needs a
token.

³ If the column is a row fence's: ErrUnguardable, "it assigns the fence column".

⁴ As ¹. The test saves several records in one call. Several records need several tokens, so the call is refused. With
a ` + "`Key`" + ` by the primary key the call is guarded.

⁵ The statement assigns the primary key as well, to its stored value. With a ` + "`Key`" + ` by the primary key, as ¹.

⁶ The statement assigns a list of columns, ` + "`(isbn, title) = ($1, $2)`" + `. If the ` + "`Key`" + ` is in the list: ErrUnguardable,
"it assigns the key column a value that may be another key".
`

// The operations' names, as an orm's actions are called.
const (
	opRead        = "read"
	opEager       = "eager loading"
	opNotFound    = "read of a missing row"
	opCreate      = "create"
	opCreateBatch = "create in batch"
	opUpdate      = "update of one column"
	opText        = "update with quotes and backslashes"
	opReturning   = "update that returns the record"
	opMissing     = "update of a missing row"
	opSave        = "save of the whole record"
	opSaveMarked  = "save, fence column in the model, not written"
	opSaveMark    = "save, fence column in the model, written"
	opSaveTree    = "save with its associations"
	opSaveNew     = "save of a record that has no row"
	opBulk        = "bulk update"
	opBulkRecords = "bulk update, a value for each record"
	opIgnore      = "create, or nothing on a conflict"
	opUpsert      = "upsert"
	opDelete      = "delete"
	opSoftDelete  = "soft delete"
	opCommit      = "transaction, committed"
	opRollback    = "transaction, rolled back"
	opNested      = "nested transaction, rolled back, in one that is committed"
	opPrepared    = "prepared statements"
	opUnique      = "create against a unique constraint"
)

var ormOperations = []ormOperation{
	{name: opRead, reads: true},
	{name: opEager, reads: true},
	{name: opNotFound, reads: true, fails: true},
	{name: opCreate, spares: true, creates: true},
	{name: opCreateBatch, spares: true, creates: true},
	{name: opUnique, spares: true, creates: true, fails: true},
	{name: opUpdate},
	{name: opText},
	{name: opReturning},
	{name: opMissing, spares: true},
	{name: opSave},
	{name: opSaveMarked},
	{name: opSaveMark, writesMark: true},
	{name: opSaveTree},
	{name: opSaveNew, spares: true},
	{name: opBulk},
	{name: opBulkRecords},
	{name: opIgnore, spares: true, creates: true},
	{name: opUpsert, creates: true},
	{name: opDelete},
	{name: opSoftDelete},
	{name: opCommit},
	{name: opRollback, fails: true},
	{name: opNested},
	{name: opPrepared},
}

// An ormRule is a way to register the books.
type ormRule struct {
	name  string
	rules []sqlfence.Rule
	row   bool   // the mark is in the row
	key   string // the column by which each row has a token
}

var ormRules = []ormRule{
	{"row fence", []sqlfence.Rule{sqlfence.RowFence("fence_token")}, true, ""},
	{"ledger", []sqlfence.Rule{sqlfence.Ledger()}, false, ""},
	{"row fence by key", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("isbn")}, true, "isbn"},
	{"ledger by key", []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("isbn")}, false, "isbn"},
	{"row fence by primary key", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("id")}, true, "id"},
}

// ormRefused are the operations that can't be guarded where each row has a token
// by the primary key. It is never assigned; but no INSERT is guarded that leaves
// it to the database (see ormOperation.creates), and sqlc prepares them all at
// once.
var ormRefused = map[string][]string{
	"sqlc": {opPrepared},
}

// ormAssigned are the operations that assign the ISBN what it is, and that of the
// one book for which they do; "" if there are several. As the key it is guarded
// where the context holds the token of this one alone.
var ormAssigned = map[string]map[string]string{
	"gorm":              {opSave: "i2", opSaveTree: "", opSaveNew: "i5"},
	"gorm, PrepareStmt": {opSave: "i2", opSaveTree: "", opSaveNew: "i5"},
	"ent":               {opUpsert: ""},
	"bun":               {opSave: "i2"},
	"xorm":              {opSave: "i2"},
	"pop":               {opSave: "i2"},
	"upper":             {opSave: "i2"},
	"goqu":              {opSave: "i2"},
	"jet":               {opSave: "i2"},
}

// ormAssignedID are those that assign the primary key what it is.
var ormAssignedID = map[string]map[string]string{
	"upper": {opReturning: "2", opSave: "2", opSaveMarked: "2"},
}

// ormListed are those that assign it in a list of columns, on PostgreSQL.
var ormListed = map[string][]string{
	"jet": {opSave},
}

// ormKeys are those of the books that there are, and of those that operations
// create; another is of none.
var ormKeys = []string{"i1", "i2", "i3", "i4", "i5", "1", "2", "3", "4", "5", "another"}

// tokens are those that cover all books, with one value; none for 0.
func (r ormRule) tokens(value int64) []sqlfence.Token {
	if value == 0 {
		return nil
	}
	if r.key == "" {
		return []sqlfence.Token{{Name: "books", Value: value}}
	}
	var all []sqlfence.Token
	for _, key := range ormKeys {
		all = append(all, sqlfence.Token{Name: "books/" + key, Value: value})
	}
	return all
}
