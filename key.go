package sqlfence

// Key gives each row a token of its own: the token named resource + "/42" guards the row with 42 in column. A
// write of a row for which the context carries no token fails with [ErrOutOfScope].
//
// The column must have an integer, text or UUID type, because the key is compared as the database prints it. An
// INSERT must show its keys, or see [UnfencedInserts]. A write that may change a row's key to that of another
// token is refused. With [Ledger], all tokens that the context carries for rows of the table must be current,
// also for rows that the statement doesn't reach.
func Key(column string) Rule {
	return func(t *registration) { t.Once(&t.Rules.Key, "Key", column) }
}
