package rewrite

// ParseName reads an SQL name of one or two parts, "books", `shop."Books"`, and
// returns it as the database would after folding: schema (or "") and name.
func ParseName(d Dialect, s string) (schema, name string, err error) {
	says, err := d.guarded()
	if err != nil {
		return "", "", err
	}
	return says.grammar().Lex.ParseName(s)
}

// ParseColumn reads the name of a column.
func ParseColumn(d Dialect, s string) (string, error) {
	says, err := d.guarded()
	if err != nil {
		return "", err
	}
	return says.grammar().Lex.ParseColumn(s)
}

// InTransaction reports whether a connection is in a transaction after a text
// of statements, which it executes in or outside of one: for those who begin
// and end transactions by SQL. Where that can't be seen, it says yes.
func InTransaction(d Dialect, query string, in bool) bool {
	says, err := d.guarded()
	return err != nil || says.grammar().InTransaction(query, in)
}
