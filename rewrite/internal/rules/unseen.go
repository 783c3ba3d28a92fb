package rules

import (
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// againstCode returns why some code must not run: it may change a setting that isn't shown, or it writes to a table
// with definitions; empty if it does neither. Code that can't be read may.
func againstCode(d *render.Dialect, code string) advise.Code {
	unseen := d.Guard.Unseen
	if unseen == nil {
		return advise.Readable
	}
	t, err := read.Open(d.Grammar, code, lex.EscapesUnknown)
	if err != nil {
		return sqltext.UnseenSetting
	}
	defer t.Close()
	for i := range t.Tokens[:len(t.Tokens)-1] {
		if reason := unseen(&t.Scanned, int32(i)); reason != "" {
			return advise.Code(reason)
		}
	}
	if writesDefinitions(d, t, lex.Span{Hi: int32(len(t.Tokens) - 1)}) >= 0 {
		return advise.DefinesTables
	}
	return advise.Readable
}
