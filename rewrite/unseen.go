package rewrite

import (
	"github.com/sqlfence/sqlfence/internal/sql/read"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// unseenIn returns why some code may change a setting that isn't shown; empty if it doesn't. Code that
// can't be read may.
func unseenIn(d *dialect, code string) string {
	unseen := d.guard.Unseen
	if unseen == nil {
		return ""
	}
	t, err := read.Open(d.grammar, code)
	if err != nil {
		return sqltext.UnseenSetting
	}
	defer t.Close()
	for i := range t.Tokens[:len(t.Tokens)-1] {
		if reason := unseen(t, int32(i)); reason != "" {
			return reason
		}
	}
	return ""
}
