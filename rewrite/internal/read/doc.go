// Package read turns the text of SQL statements into structure: which tables are
// written to, and where in the text the clauses of each write stand. It makes no
// edits and knows no rules for tables; what follows from what it finds is decided by
// who reads with it.
//
//	t, err := read.Open(read.Postgres, query, wanted)
//	if err != nil { … }
//	defer t.Close()
//	for t.Next() {
//		for _, p := range t.Parts { … }
//	}
//
// It recognises what it understands fully. Where it doesn't, it says so, in a part of
// its own or as the [Failure] of a write, and never guesses. The grammar of a database
// is a value, [Grammar], one file a database.
//
// What a reader needs of the tokens themselves it asks a Text for: Offset and After (the
// bytes where a token begins and where the one before it ends), Word, Name, TokenText,
// Find (the first name in a span that a function knows), FoldsByLocale, Behind (the
// semicolon) and ChangesEncoding; Assigns, Value and PlainValue (what an assignment
// assigns), Constant and Excluded (what a value is), Item (one of a list), Repeatable
// (the parts of a condition that may be evaluated twice), HiddenWrite, NumberInputs,
// EachBare and Source (placeholders), Code and Executes (of a DO).
//
// A Text and everything it returns is valid until its Close or, what is of a
// statement, its Next. Strings stay.
package read
