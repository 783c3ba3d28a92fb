package rewrite

import (
	"github.com/sqlfence/sqlfence/internal/editlock"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// An editLock keeps others than the lock's holder from writing a row.
type editLock struct {
	addsNothing
	setsNothing
}

// inWhere: a serial that the statement assigns comes first, and sees to the lock.
func (editLock) inWhere(t *registered, how rowWrite) bool { return t.Locks() && !how.setsNumber }

type editLockText struct{ assignsNothing }

func (editLockText) refuses(w *writer) bool { return w.rules.Locks() }

// check writes the condition that no other user holds the row's lock now, by the database's clock.
// Without an editor, every holder is another user: the editor is then the empty text, which never
// holds a lock.
func (editLockText) check(w *writer) {
	l, d := &w.rules.quoted.lock, w.dialect
	by, since, expiry := w.target.qualifier+"."+l.By, w.target.qualifier+"."+l.Since, w.target.qualifier+"."+l.Expiry
	before, behind := d.guard.KeyText.Ends()
	text := before + by + behind
	w.write("CASE WHEN ", editlock.NoHolder(by, text, d.Text(""), d.Facts().BuiltIn), " OR ")
	w.same(text, 0, fieldEditor)
	w.write(" OR NOT COALESCE(", expiry)
	w.operator(">")
	w.write(d.Now(), ", ", d.Bool(false), ") THEN ", d.Bool(true), " ELSE ")
	_, and, _ := d.Raising()
	w.raiseAfterLedger(guard.Locked, l.By, "COALESCE(", d.Micros(since), ", 0)", and, "':'", and,
		"COALESCE(", d.Micros(expiry), ", 0)", and, "':'", and, text)
	w.write(" IS NOT NULL END")
}
