package render

import (
	"strconv"

	"github.com/sqlfence/sqlfence/internal/guard"
)

// claimedColumns returns the key column and the claim column of the table with the claims, as the guard's query reads
// them.
func (w claims) claimedColumns() guard.ClaimColumns {
	c := &w.rules.ClaimOf
	return guard.ClaimColumns{
		Key:   w.Dialect.keyText(guard.ClaimedTable + "." + w.Dialect.Quote(c.Key)),
		Claim: "COALESCE(" + guard.ClaimedTable + "." + w.Dialect.Quote(c.Claim) + ", 0)",
	}
}

// claimedRows writes, for a FROM, the table that ClaimOf names and the condition for the rows that the tokens name. The
// comparison with the column uses the index, and finds all rows with a key that the type and collation consider equal.
// The comparison with the key's text keeps only the rows with exactly the token's key.
func (w claims) claimedRows() {
	w.write(w.claimsTable(), " WHERE "+guard.ClaimedTable+".", w.Dialect.Quote(w.rules.ClaimOf.Key))
	w.write(" IN (")
	w.listTokens(fieldRow)
	w.write(") AND ", w.claimedColumns().Key)
	w.amongTokens(fieldKey)
}

// claimsTable returns the table of the claims, with its alias.
func (w claims) claimsTable() string {
	c, schema := &w.rules.ClaimOf, ""
	switch {
	case c.Schema != "":
		schema = w.Dialect.Quote(c.Schema) + "."
	case w.Dialect.Guard.OwnLedgers.Is():
		schema = w.target.Prefix
	}
	return schema + w.Dialect.Quote(c.Name) + " AS " + guard.ClaimedTable
}

// mostNamed is the highest number of tokens for which a refusal names the token of a missing row, because for that the
// database must count the rows of each token.
const mostNamed = 8

// compareClaims writes a condition over the rows of a query from [claims.claimedRows]. The condition is true if each
// token names a found row, and all rows have the claim values of their tokens. Otherwise the condition throws an error
// that names a row with another claim value, or a missing row.
func (w claims) compareClaims(row guard.ClaimColumns) {
	before, between, behind := w.Dialect.Guard.ClaimText.Parts()
	min, count := w.Dialect.builtIn("MIN"), w.Dialect.builtIn("COUNT")
	proved := func() {
		w.write(before, row.Key, between, row.Claim, behind)
		w.amongTokens(fieldClaim)
	}
	w.write("CASE WHEN ", min, "(CASE WHEN ")
	proved()
	w.write(" THEN 1 ELSE 0 END)")
	w.operator("=")
	w.write("1")
	if n := w.hi - w.lo; n > 1 {
		w.write(" AND ", count, "(DISTINCT ", row.Key, ")")
		w.operator("=")
		w.b.Int(int64(n))
	}
	w.write(" THEN ")
	w.bool(true)
	w.write(" ELSE ")
	w.throwDetail(byClaim, w.lo, func() {
		w.write("COALESCE(", min, "(CASE WHEN ")
		proved()
		w.write(" THEN NULL ELSE ", before)
		w.eachToken(func(i int) { w.same(row.Key, i, fieldKey) })
		w.write(between, row.Claim, behind, " END), ", before)
		if w.hi-w.lo > mostNamed {
			w.write(w.Dialect.Text("-1"))
		} else {
			w.eachToken(func(i int) {
				w.write(count, "(CASE WHEN ")
				w.same(row.Key, i, fieldKey)
				w.write(" THEN 1 END)")
				w.operator("=")
				w.write("0")
			})
		}
		w.write(between, w.Dialect.Text(goneRow), behind, ")")
	})
	w.write(" IS NOT NULL END")
}

// eachToken writes a CASE with the number, as a text, of the token that meets a condition. If no token does, the CASE
// returns the last token's number.
func (w claims) eachToken(condition func(token int)) {
	text := func(i int) string { return w.Dialect.Text(strconv.Itoa(i)) }
	if w.hi == w.lo+1 {
		w.write(text(w.lo))
		return
	}
	w.write("CASE")
	for i := w.lo; i < w.hi-1; i++ {
		w.write(" WHEN ")
		condition(i)
		w.write(" THEN ", text(i))
	}
	w.write(" ELSE ", text(w.hi-1), " END")
}
