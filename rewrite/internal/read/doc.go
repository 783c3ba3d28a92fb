// Package read turns the text of SQL statements into structure: which tables are
// written to, and where in the text the clauses of each write stand. It makes no
// edits and knows no rules for tables; what follows from what it finds is decided by
// who reads with it.
//
//	t, err := read.Open(grammar, query, escapes)
//	if err != nil { … }
//	defer t.Close()
//	for t.Next() {
//		for _, p := range t.Parts { … }
//	}
//
// It recognises what it understands fully. Where it doesn't, it says so, in a part of
// its own or as the [Failure] of a write, and never guesses. The grammar of a database
// is a value, [lex.Grammar], which its folder in internal/dialect fills.
//
// What a reader needs of the tokens themselves it asks a [Text] for: what stands where
// ([lex.Scanned]), what an assignment assigns (assign.go) and whether a value is a constant
// (constant.go), which parts of a condition may be evaluated twice (condition.go), where the
// placeholders are (inputs.go), what a DO executes (code.go), and what a statement changes for
// all that follow it in its session (other.go, blocks_other.go).
//
// A Text and everything it returns is valid until its Close or, what is of a
// statement, its Next. Strings stay.
package read
