package sqlfence

// Key gives each row a token of its own: the token called resource + "/42" guards the row with 42
// in the column. A write that reaches a row without a token in the context is refused with
// [ErrOutOfScope], and so is an INSERT of such a row.
//
// The key is compared as text, as the database prints it, so the column must be of an integer, text
// or UUID type. An INSERT has to show its keys; for keys that the database makes, see
// [UnfencedInserts]. A row keeps its key: a write that may move it to another token is refused.
//
// With [Ledger], all tokens that the context carries for rows of the table must be current, also
// those for rows that the statement doesn't reach.
//
// docs/rules.md has the details, and what differs by database.
func Key(column string) Rule {
	return func(t *registration) { t.Once(&t.Rules.Key, "Key", column) }
}
