package rewrite

// A key is the column that selects each row's token. A row of which none of the
// statement's tokens is for is out of their scope.
type key struct{}

func (key) columns(t *Table) []string {
	if t.Key == "" {
		return nil
	}
	return []string{t.Key}
}

func (key) adds(*Table) (column, value string) { return "", "" }

func (key) assigns(*writer) {}

// inWhere: with a fence column, who compares the row's token sees to its key.
func (key) inWhere(t *Table, _ rowWrite) bool {
	return t.Key != "" && t.FenceColumn == ""
}

func (key) refuses(w *writer) bool {
	return w.rules.Key != "" && w.rules.FenceColumn == "" && w.compared()
}

func (key) check(w *writer) { w.byKey(func(int) { w.bool(true) }, w.outOfScope) }

// byKey writes one(token) for the token that covers the row, and otherwise() for a row
// that none covers. Without Key the one token covers all.
func (w *writer) byKey(one func(token int), otherwise func()) {
	if w.rules.Key == "" {
		one(w.lo)
		return
	}
	w.write("CASE ", w.rowsKey())
	for i := w.lo; i < w.hi; i++ {
		w.write(" WHEN ")
		w.field(i, fieldKey)
		w.write(" THEN ")
		one(i)
	}
	w.write(" ELSE ")
	otherwise()
	w.write(" END")
}

// outOfScope raises for a row that none of the tokens is for.
func (w *writer) outOfScope() {
	w.raiseCondition(markerScope, w.lo, "COALESCE(", w.rowsKey(), ", '')")
}

// rowsKey returns the row's key as text.
func (w *writer) rowsKey() string {
	before, behind := w.dialect.keyText()
	return before + w.qualifier + "." + w.rules.key + behind
}
