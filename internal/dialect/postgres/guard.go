package postgres

import (
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Guard builds guards for PostgreSQL. Functions are named with their schema, and no cast or operator that an
// application can define is used: an application's cast from text to bigint might return NULL where the built-in
// function throws an error.
//
// PostgreSQL evaluates an expression without columns while planning, so an expression that throws an error must depend
// on a column.
var Guard = &guard.Dialect{
	Capabilities: guard.Capabilities{
		SetsInOrder:       fact.No,
		ReadsNewRow:       fact.No,
		ReadsWith:         fact.No,
		SkipsLocked:       fact.Yes,
		WritesInWith:      fact.Yes,
		ChecksBeyondLimit: fact.No,
		SortsAside:        fact.No,
		FindsDatesByNull:  fact.No,
		LedgerInRow:       fact.No,
		SeeksFirst:        fact.No,
		PlansMatch:        fact.No,
		OwnLedgers:        fact.No,
	},
	Texts: guard.Texts{
		Size: guard.Around{Before: "pg_catalog.int8abs(GREATEST(COALESCE(", After: ", 0), -9223372036854775807))"},
		// concat alone would turn a NULL key into a text.
		ClaimText: guard.Around{Before: "pg_catalog.textcat(", Between: ", pg_catalog.concat(':', ", After: "))"},
		// These functions refuse a column of a floating-point type, which would take a token for equal to the tokens
		// near it.
		Equal:       guard.Around{Before: "pg_catalog.int8eq(", Between: ", ", After: ")"},
		Less:        guard.Around{Before: "pg_catalog.int8lt(", Between: ", ", After: ")"},
		LessOrEqual: guard.Around{Before: "pg_catalog.int8le(", Between: ", ", After: ")"},
		Greatest:    guard.Around{Before: "GREATEST(", Between: ", ", After: ")"},
		// NULLIF looks up its operator in the search path, and array_remove by the type.
		Unless: guard.Around{Before: "(pg_catalog.array_remove(ARRAY[", Between: "], ", After: "))[1]"},
		// As a condition this would compare a number with a record.
		Assigns:  guard.Around{Before: "(", Between: ") = ROW(", After: ")"},
		Assigned: guard.Around{Before: "COALESCE((", Between: "), ", After: ")::bigint"},
		Strict:   []string{"pg_catalog.int8le", "pg_catalog.int8lt", "pg_catalog.int8eq", "pg_catalog.int8abs"},
	},
	Protected: guard.Protected{
		Code: "plpgsql", DefaultSchema: "public",
		Cascades: fact.Yes,
		Setting:  protectedSetting, Setters: setterNames,
		DynamicSetting: dynamicSetting, Argument: settingArgument,
	},
	Search: guard.Search{
		Names: []string{"client_encoding"},
		// "names" is of SET NAMES.
		Words: append([]string{"names", sqltext.TriggerSetting, "schema", "owned", "plpgsql"}, setterNames...),
	},
	MaxInputs: 65535, MaxAdded: 65535, // the protocol counts them in two bytes

	DefiningTables: catalogue, DefiningSchema: "pg_catalog",

	LedgerCheck: ledgerCheck, LedgerFirst: ledgerFirst, LedgerTail: ledgerTail,
	ClaimsCheck: claimsCheck, ClaimsFirst: claimsFirst, ClaimsTail: claimsTail,
	PresentDelete: presentDelete,

	ClaimsAtOnce: 1, AmongClaims: amongClaims, SpellsKey: spellsKey,
}

// amongClaims writes a condition: the row's claim is a key of the jsonb object of the presented claims. PostgreSQL
// finds a key by binary search under every plan. It would search an IN list from its beginning for each row, unless it
// plans the statement again with the values of this execution.
func amongClaims(w guard.Writer, of guard.Lookup) {
	w.Write("pg_catalog.jsonb_exists(")
	w.Presented(of)
	w.Write("::pg_catalog.jsonb, ")
	w.RowsText(of)
	w.Write(")")
}

// spellsKey writes the condition of [guard.Dialect.SpellsKey]. To cast a token's key to the column's type could be an
// error. So texts are compared by the column's collation, char(n) without trailing blanks and citext in lower case; an
// enum has one spelling, integers and UUIDs a plain one; and a key of another type, as a time, equals any token's.
//
// Its strings must also be valid SQL tokens without their quotes: if another setting for backslashes moves the ends of
// the statement's strings, package lex must still see that PostgreSQL refuses the statement.
func spellsKey(w guard.Writer) {
	row := w.Row()
	taken := func(condition string) {
		w.Write("EXISTS (SELECT FROM pg_catalog.jsonb_each_text(")
		w.Presented(guard.OfTakenKey)
		w.Write(`::pg_catalog.jsonb) AS k (name, value) WHERE ` +
			`pg_catalog.texteq(pg_catalog."right"(k.name, 1), ':') AND ` +
			"pg_catalog.textne(k.value, pg_catalog.concat(" + row.Claim + "))" + condition + ")")
	}
	const key = `pg_catalog."left"(k.name, -1)`
	is := func(name string) string { return "pg_catalog.texteq(t.typname::pg_catalog.text, '" + name + "')" }
	text := row.Key + "::pg_catalog.text"
	w.Write("(SELECT CASE WHEN pg_catalog.chareq(t.typcategory, 'S') THEN ")
	taken(" AND (pg_catalog.texteq(" + text + ", " + key + ") OR " +
		is("bpchar") + " AND pg_catalog.texteq(" + text + ", pg_catalog.rtrim(" + key + ")) OR " +
		is("citext") + " AND pg_catalog.texteq(pg_catalog.lower(" + text + "), pg_catalog.lower(" + key + ")))")
	w.Write(" WHEN pg_catalog.chareq(t.typcategory, 'E') THEN false WHEN " + is("uuid") +
		" OR pg_catalog.chareq(t.typcategory, 'N') AND pg_catalog.texteq(pg_catalog.translate(" + w.KeyText() +
		", '-0123456789', ''), '') THEN COALESCE(pg_catalog.textne(pg_catalog.jsonb_object_field_text(")
	w.Presented(guard.OfTakenKey)
	w.Write("::pg_catalog.jsonb, pg_catalog.concat(" + w.KeyText() + ", ':#')), pg_catalog.concat(" + row.Claim +
		")), false) ELSE ")
	taken("")
	w.Write(" END FROM pg_catalog.pg_type AS d JOIN pg_catalog.pg_type AS t ON t.oid OPERATOR(pg_catalog.=) " +
		"CASE WHEN pg_catalog.oideq(d.typbasetype, '0') THEN d.oid ELSE d.typbasetype END " +
		"WHERE d.oid OPERATOR(pg_catalog.=) pg_catalog.pg_typeof(" + row.Key + "))")
}

// presentDelete writes a call that stores the presented tokens in a setting, which lasts until the transaction ends.
// The seal clears the setting before each statement.
func presentDelete(w guard.Writer) {
	w.Write("pg_catalog.set_config('" + sqltext.DeleteSetting(w.Table()) + "', pg_catalog.concat(")
	w.PresentedTokens()
	w.Write("), true) IS NOT NULL")
}

// ledgerCheck calls the function that Setup installs, which takes the name's advisory lock and compares the token with
// the newest token. The call names the function's schema, if known, and has the declared argument types, so that no
// other function matches; the last argument is the ledger to query. In a separate subquery the function is called once,
// whether the ledger has a row for the name or not.
func ledgerCheck(w guard.Writer, token int) {
	w.Write("COALESCE((SELECT ")
	w.Write(w.FunctionSchema())
	w.Write(sqltext.LedgerFunction + "(")
	w.TypedName(token)
	w.Write(", ")
	w.TypedValue(token)
	w.Write(", ")
	w.Int(int64(token))
	w.Write(", '")
	w.Write(w.Nonce())
	w.Write("'::pg_catalog.text, ")
	w.Write(Text.Text(w.Ledger()))
	w.Write("::pg_catalog.regclass)), false)")
}

// ledgerFirst writes a condition without columns, which PostgreSQL evaluates before it reads a row.
func ledgerFirst(w guard.Writer, token int) {
	ledgerNewer(w, token)
	w.Write(" IS NULL")
}

// ledgerTail writes an OFFSET with the check, because PostgreSQL evaluates OFFSET first. OFFSET NULL skips no rows.
func ledgerTail(w guard.Writer) {
	w.Write(" OFFSET (")
	lo, hi := w.Tokens()
	for i := lo; i < hi; i++ {
		if i > lo {
			w.Write(" OPERATOR(pg_catalog.+) ")
		}
		ledgerNewer(w, i)
	}
	w.Write(")")
}

// ledgerNewer writes a query that throws an error if the ledger has a newer token. It takes no lock, because the
// statement may still have to wait for rows. A lower token there throws no error, because the snapshot may be old.
func ledgerNewer(w guard.Writer, token int) {
	const stored = sqltext.LedgerTable + ".token"
	w.Write("(SELECT ")
	w.Throw(guard.NotNewest, token, stored)
	w.Write(" FROM ")
	w.Write(w.Ledger())
	w.Write(" WHERE " + sqltext.LedgerTable + ".name OPERATOR(pg_catalog.=) ")
	w.Name(token)
	w.Write(" AND NOT ")
	w.Compare(guard.LessOrEqual, token, stored)
	w.Write(")")
}

// claimsCheck locks the claimed rows, and then compares them. Unlike ledgerCheck it takes no advisory lock to let a
// takeover have its turn: only workers with these claims share the row lock, too few to hold it for ever.
func claimsCheck(w guard.Writer) {
	row := w.Claimed()
	w.Write("(SELECT ")
	w.CompareClaims(guard.ClaimColumns{Key: `held.key COLLATE pg_catalog."C"`, Claim: "held.claim"})
	w.Write(" FROM (SELECT ")
	w.Write(row.Key)
	w.Write(" AS key, ")
	w.Write(row.Claim)
	w.Write(" AS claim FROM ")
	w.ClaimedRows()
	w.Write(" FOR SHARE OF " + guard.ClaimedTable + ") AS held)")
}

// claimsFirst writes a condition that reads the check's WITH item, so that the check locks the claimed rows before the
// statement reads rows. The item is evaluated once; so the statement may change the claimed rows afterwards.
func claimsFirst(w guard.Writer) {
	if w.QueryOnly() {
		claimsCheck(w)
		return
	}
	lo, _ := w.Tokens()
	w.Write("(SELECT newest FROM ")
	w.Item(lo)
	w.Write(")")
}

// claimsTail writes an OFFSET with the check, because PostgreSQL evaluates OFFSET first. OFFSET NULL skips no rows.
func claimsTail(w guard.Writer) {
	lo, _ := w.Tokens()
	w.Write(" OFFSET (SELECT CASE WHEN NOT newest THEN 0 END FROM ")
	w.Item(lo)
	w.Write(")")
}
