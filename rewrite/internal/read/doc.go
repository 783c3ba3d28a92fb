// Package read parses SQL statements: which tables are written to, and where in the text the clauses of each write
// stand. Package read makes no edits and knows no rules for tables. Its callers draw the conclusions.
//
//	t, err := read.Open(grammar, query, escapes)
//	if err != nil { … }
//	defer t.Close()
//	for t.Next() {
//		for _, p := range t.Parts { … }
//	}
//
// Package read never guesses. A text that it doesn't fully understand becomes a separate part, or the [Failure] of a
// write. The grammar of a database is a value, [lex.Grammar], which the database's folder in internal/dialect fills.
//
// A [Text] answers the callers' further queries about tokens: the words and brackets ([lex.Scanned]), the assigned
// column and value (assign.go), whether a value is a constant (constant.go), the parts of a condition that may be
// evaluated twice (condition.go), the placeholders (inputs.go), the code that a DO executes (code.go), and the session
// changes of a statement that affect all following statements (other.go, blocks_other.go).
//
// A Text and all its results are valid until Close. The results about one statement are valid until Next. Strings stay
// valid.
package read
