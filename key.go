package sqlfence

import "fmt"

// Key gives each row a separate token: the token named resource + "/42" guards the row with 42 in column, which must
// have an integer, text or UUID type. A write of a row without a token in the context fails with [ErrOutOfScope]. With
// [Ledger], all the context's tokens of the table must be current, even for rows that the statement doesn't reach.
//
// An INSERT must contain its keys as constants or arguments; see [UnfencedInserts] for generated keys. A write is
// refused if it may give a row a key that another token covers.
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
