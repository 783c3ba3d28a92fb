package sqlfence

import "fmt"

// Key gives each row a token of its own: the token named resource + "/42" guards the row with 42 in column,
// which must have an integer, text or UUID type. A write of a row for which the context carries no token fails
// with [ErrOutOfScope]. With [Ledger], all tokens that the context carries for rows of the table must be
// current, also for rows that the statement doesn't reach.
//
// An INSERT must show its keys; see [UnfencedInserts] for keys that the database makes. A write is refused if
// it may change a row's key to that of another token.
func Key(column string) Rule {
	return func(t *registration) {
		if first := t.Rules.Key; first != "" && column != "" && first != column {
			t.Fail(fmt.Errorf("Key twice, with %q and %q; for a key of several columns, add a generated column "+
				"(docs/jobs.md)", first, column))
			return
		}
		t.Once(&t.Rules.Key, "Key", column)
	}
}
