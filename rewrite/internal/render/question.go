package render

// Question returns a query without arguments that raises if the ledger refuses one of the tokens
// that a statement was rendered with, by the markers of its guard: what an error that came
// before the guard leaves open. It is empty where there is nothing to ask.
func (p *Plan) Question(v Values) string {
	if v.check(p) != nil {
		return ""
	}
	w := newWriter(&p.Source)
	defer w.release()
	w.take(&v)
	w.literal, w.asksAlone = true, true
	separator := "SELECT "
	asked := make([]bool, len(p.Tables))
	for i := range p.Targets {
		w.choose(i)
		if !asked[w.table] && texts[RuleLedger].refuses(w) {
			w.write(separator)
			w.check(SetOf(RuleLedger))
			separator, asked[w.table] = " AND ", true
		}
	}
	return w.b.String()
}
