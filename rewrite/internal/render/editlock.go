package render

import (
	"github.com/sqlfence/sqlfence/internal/editlock"
	"github.com/sqlfence/sqlfence/internal/guard"
)

type editLock struct{ assignsNothing }

func (editLock) refuses(*writer) bool { return true }

// check writes the condition that no other user holds the row's lock now, by the database's clock. Without an editor,
// every holder is another user: the editor is then the empty text, which never holds a lock.
func (editLock) check(w *writer) {
	l, d := &w.rules.Quoted.lock, w.Dialect
	by, since, expiry := w.target.Qualifier+"."+l.By, w.target.Qualifier+"."+l.Since, w.target.Qualifier+"."+l.Expiry
	text := d.keyText(by)
	w.write("CASE WHEN ", editlock.NoHolder(by, text, d.Text(""), d.Capabilities().BuiltIn), " OR ")
	w.same(text, 0, fieldEditor)
	w.write(" OR NOT COALESCE(", expiry)
	w.operator(">")
	w.write(d.Now(), ", ", d.Bool(false), ") THEN ", d.Bool(true), " ELSE ")
	_, and, _ := d.Throwing()
	w.throwAfterLedger(guard.Locked, l.By, "COALESCE(", d.Micros(since), ", 0)", and, "':'", and,
		"COALESCE(", d.Micros(expiry), ", 0)", and, "':'", and, text)
	w.write(" IS NOT NULL END")
}
