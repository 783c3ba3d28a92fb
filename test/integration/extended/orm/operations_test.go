package orm_test

import (
	"slices"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The operations that each ORM runs.

// An ormOperation is an operation with its expected results.
type ormOperation struct {
	name string

	reads  bool // needs no token
	spares bool // touches no existing row, so a row fence has no stored token to compare
	fails  bool // returns an error on the base driver too

	creates bool // inserts a row whose primary key the database generates

	// writesMark is set if the model writes the fence column. Under RowFence the write is refused.
	writesMark bool
}

func (op ormOperation) changes() bool { return !op.reads && !op.fails && op.name != opMissing }

// verdict returns the operation's cell in the table of docs/data/compatibility.md.
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

// listsKey reports whether ormListed has the operation, on a PostgreSQL driver.
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

// The operations' names are the keys of ormActions.
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
	row   bool   // the row has a fence column
	key   string // the column that names each row's token
}

var ormRules = []ormRule{
	{"row fence", []sqlfence.Rule{sqlfence.RowFence("fence_token")}, true, ""},
	{"ledger", []sqlfence.Rule{sqlfence.Ledger()}, false, ""},
	{"row fence by key", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("isbn")}, true, "isbn"},
	{"ledger by key", []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("isbn")}, false, "isbn"},
	{"row fence by primary key", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("id")}, true, "id"},
}

// ormRefused are further operations that are refused under Key("id"), in addition to those with creates set. sqlc
// prepares all its queries at once, and one of them is an INSERT whose primary key the database generates.
var ormRefused = map[string][]string{
	"sqlc": {opPrepared},
}

// ormAssigned are operations whose UPDATE assigns the ISBN its present value. The value is the ISBN of the one updated
// book, or "" if the operation updates several books. Under Key("isbn") such an UPDATE is accepted only if the context
// holds the token of this book and no other token of the table.
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

// ormAssignedID are operations whose UPDATE assigns the primary key its present value.
var ormAssignedID = map[string]map[string]string{
	"upper": {opReturning: "2", opSave: "2", opSaveMarked: "2"},
}

// ormListed are operations that assign the key in a column list, SET (a, b) = (x, y), on PostgreSQL.
var ormListed = map[string][]string{
	"jet": {opSave},
}

// ormKeys are the keys of the initial books and of the books that operations create. No book has the key "another".
var ormKeys = []string{"i1", "i2", "i3", "i4", "i5", "1", "2", "3", "4", "5", "another"}

// tokens returns tokens with the given value for all books, or no token for 0.
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
