package rewrite

import "github.com/sqlfence/sqlfence/rewrite/internal/confirm"

// unconfirmed is why a statement is refused that can't be confirmed.
const unconfirmed = "the guard can't be confirmed to stand where it belongs; write the statement more plainly, with names that are keywords in quotes"

// pieceKinds says as what each edit is confirmed. Those that have no kind never are;
// opText isn't looked at.
var pieceKinds = [...]confirm.Kind{
	opAbort:      confirm.OrAbort,
	opMark:       confirm.Assignment,
	opCheck:      confirm.Condition,
	opLedger:     confirm.AndCondition,
	opStatements: confirm.WithItems,
	opColumn:     confirm.Column,
	opValue:      confirm.RowValue,
	opSerial:     confirm.Assignment,
	opTokens:     confirm.Condition,
	opRaised:     confirm.BeforeValue,
	opRaisedEnd:  confirm.BehindValue,
	opGone:       confirm.Returning,
}

// piece is what an edit has written from lo to hi, to be confirmed.
func (e *edit) piece(lo, hi int) confirm.Piece {
	return confirm.Piece{Kind: pieceKinds[e.op], Target: e.text, Lo: lo, Hi: hi}
}

// confirmDialects are the dialects that can be guarded, as the second look knows them.
var confirmDialects = [...]*confirm.Dialect{Postgres: confirm.Postgres, SQLite: confirm.SQLite}
