package read

import "github.com/sqlfence/sqlfence/internal/sql/lex"

// A Grammar says which statements a database knows. It is immutable and safe for
// concurrent use.
type Grammar struct {
	Lex *lex.Rules
	own *statements // of a grammar that shares little with others; nil for none

	// Statements.
	explain        bool // EXPLAIN ANALYZE runs its statement
	inBrackets     bool // a statement may stand in brackets
	merge          bool // MERGE
	replace        bool // REPLACE, as INSERT OR REPLACE
	code           bool // DO, CALL and PREPARE
	copies         bool // COPY and DECLARE
	joins          bool // CREATE TABLE ... PARTITION OF and INHERITS
	selectInto     bool // SELECT ... INTO creates a table
	textNames      bool // a string may stand for a table's name
	recursiveName  bool // WITH's RECURSIVE may be a name
	searchAndCycle bool // SEARCH and CYCLE behind a part of WITH
	noRows         []string
	encodings      bool // client_encoding can be changed
	charsets       bool // character_set_client can be
	autocommit     bool // SET and XA begin transactions, too

	// Clauses of a write.
	only            bool // ONLY name, and name *
	bareAlias       bool // an alias may stand without AS
	orClause        bool // OR x behind the verb
	indexedBy       bool // INDEXED BY and NOT INDEXED
	limits          bool // ORDER BY and LIMIT of an UPDATE and DELETE
	queryInBrackets bool // INSERT INTO name (SELECT ...)
	rowKeyword      bool // (a, b) = ROW(1, 2)
	plainInBrackets bool // (a) = 1
	doubleEquals    bool // a == 1 is a = 1
	qualifiedSet    bool // SET table.column = 1, and := for =
	rowConstructors bool // VALUES ROW(1, 2)
	emptyRows       bool // () VALUES ()
	onDuplicate     bool // ON DUPLICATE KEY UPDATE, and VALUES(column) in it
	behindColumns   []string

	// Expressions.
	words          [maxWord + 1][26][]keyword
	caseLabel      bool // CASE behind an operand is a label
	operatorCalls  bool // OPERATOR(schema.+) and AT TIME ZONE
	withNoClause   bool // WITH TIME ZONE and WITH UNIQUE KEYS
	windowLooksOn  bool // WINDOW is a keyword only before name AS
	clauseNames    bool // words that begin the clauses behind a query are names where an operand is wanted
	pipesMayBeOr   bool // || is OR, by a setting
	arrowMayFail   bool // -> and ->>
	mathMayFail    bool // casts and arithmetic
	wholeNumbers   bool // the lexer knows where a number ends
	namedParams    bool // placeholders may have a name, or none
	typedConstants bool // 1::bigint and bigint '1'
	keepingTypes   []string
}

// statements are how a grammar of its own reads a statement: write, if it is a write of rows,
// and else class.
type statements struct {
	write func(t *Text) bool
	class func(t *Text) Class
}

// commonEnds are the words that may follow the columns of a SELECT.
var commonEnds = []string{"from", "where", "group", "having", "union", "intersect", "except", "window", "order", "limit", "on", "returning"}

// commonNoRows begin statements that change no rows in any database.
var commonNoRows = []string{"begin", "start", "commit", "end", "rollback", "savepoint", "release", "analyze", "vacuum", "reindex"}
