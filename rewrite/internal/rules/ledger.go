package rules

import "github.com/sqlfence/sqlfence/rewrite/internal/render"

// A ledger is the rule Ledger: it compares the write's tokens with the newest tokens in the table fencing_tokens.
type ledger struct {
	addsNothing
	setsNothing
}

func (ledger) inWhere(*render.Registered, rowWrite) bool { return false }
