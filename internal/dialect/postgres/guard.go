package postgres

import (
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Guard is what the guard says in PostgreSQL. What it calls is named with its schema, and casts and
// operators that an application can make are left alone: a cast of its own from text
// to bigint might give NULL where the built-in function raises.
//
// PostgreSQL evaluates an expression without columns while planning, so what raises has
// to depend on one.
var Guard = &guard.Dialect{
	Facts: guard.Facts{
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
		Size:    guard.Around{Before: "pg_catalog.int8abs(GREATEST(COALESCE(", Behind: ", 0), -9223372036854775807))"},
		KeyText: guard.Around{Behind: `::pg_catalog.text COLLATE pg_catalog."C"`},
		// concat alone would make a text of a key that is NULL.
		ClaimText: guard.Around{Before: "pg_catalog.textcat(", Between: ", pg_catalog.concat(':', ", Behind: "))"},
		// The functions take integers only. Compared with a column of a floating type, a token is equal to those
		// near it.
		Equal:       guard.Around{Before: "pg_catalog.int8eq(", Between: ", ", Behind: ")"},
		Less:        guard.Around{Before: "pg_catalog.int8lt(", Between: ", ", Behind: ")"},
		LessOrEqual: guard.Around{Before: "pg_catalog.int8le(", Between: ", ", Behind: ")"},
		Greatest:    guard.Around{Before: "GREATEST(", Between: ", ", Behind: ")"},
		// NULLIF finds its operator by the search path, and array_remove by the type.
		Unless: guard.Around{Before: "(pg_catalog.array_remove(ARRAY[", Between: "], ", Behind: "))[1]"},
		// A condition would compare a number with a record.
		Assigns:  guard.Around{Before: "(", Between: ") = ROW(", Behind: ")"},
		Assigned: guard.Around{Before: "COALESCE((", Between: "), ", Behind: ")::bigint"},
		Strict:   []string{"pg_catalog.int8le", "pg_catalog.int8lt", "pg_catalog.int8eq", "pg_catalog.int8abs"},
	},
	Ground: guard.Ground{
		Code: "plpgsql", Home: "public",
		Cascades: fact.Yes,
		Setting:  keptSetting, Setters: setterNames,
		Unseen: unseenSetting, Argument: settingArgument,
	},
	Search: guard.Search{
		Names: []string{"client_encoding"},
		// "names" is of SET NAMES.
		Words: append([]string{"names", sqltext.TriggerSetting, "schema", "owned", "plpgsql"}, setterNames...),
	},
	MaxInputs: 65535, MaxAdded: 65535, // they are counted in two bytes

	DefiningTables: catalogue, DefiningSchema: "pg_catalog",

	LedgerCheck: ledgerCheck, LedgerFirst: ledgerFirst, LedgerTail: ledgerTail,
	ClaimsCheck: claimsCheck, ClaimsFirst: claimsFirst, ClaimsTail: claimsTail,
	ProveDelete: proveDelete,

	ClaimsAtOnce: 1, AmongClaims: amongClaims, SpellsKey: spellsKey,
}

// amongClaims: in a jsonb object a name is found by halves, whatever the plan. A list would be searched from its
// beginning for each row, unless the statement is planned anew with its values.
func amongClaims(w guard.Writer, of guard.Lookup) {
	w.Write("pg_catalog.jsonb_exists(")
	w.Presented(of)
	w.Write("::pg_catalog.jsonb, ")
	w.RowsText(of)
	w.Write(")")
}

// spellsKey goes by the type of the key, as a key that the type can't read would be an error. Texts are compared by the
// column's collation, those of char(n) without blanks at the end, and those of citext in lower case. Enums have one
// spelling, and integers and UUIDs have a plain one. A key of another type, such as a time, may be any.
//
// Outside of its quotes each text reads as tokens as well: the user's text may be one that PostgreSQL refuses under
// another setting for backslashes, and has to stay so.
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

// proveDelete: the setting is the transaction's, and is cleared before each statement.
func proveDelete(w guard.Writer) {
	w.Write("pg_catalog.set_config('" + sqltext.DeleteSetting(w.Table()) + "', pg_catalog.concat(")
	w.ProvenTokens()
	w.Write("), true) IS NOT NULL")
}

// ledgerCheck has the function that Setup installs compare the token with the newest one, behind the name's turn. It
// is named with its schema, where that is known, and its arguments are of the types that it is declared with, so that no
// other function can take its place; it gets the table that the session finds. As a query of its own it is called
// once, whether the ledger has a row for the name or not.
func ledgerCheck(w guard.Writer, token int) {
	w.Write("COALESCE((SELECT ")
	if home := w.LedgerHome(); home != "" {
		w.Write(home + ".")
	}
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

// ledgerFirst: PostgreSQL evaluates a condition without columns before it reads a row.
func ledgerFirst(w guard.Writer, token int) {
	ledgerNewer(w, token)
	w.Write(" IS NULL")
}

// ledgerTail: an offset is evaluated first, and NULL is none.
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

// ledgerNewer takes no turn and locks nothing: the statement may still have to wait for rows.
// Only the snapshot that has a newer token says something of this one: an older token may be
// the snapshot's age.
func ledgerNewer(w guard.Writer, token int) {
	const stored = sqltext.LedgerTable + ".token"
	w.Write("(SELECT ")
	w.Raise(guard.NotNewest, token, stored)
	w.Write(" FROM ")
	w.Write(w.Ledger())
	w.Write(" WHERE " + sqltext.LedgerTable + ".name OPERATOR(pg_catalog.=) ")
	w.Name(token)
	w.Write(" AND NOT ")
	w.Compare(guard.LessOrEqual, token, stored)
	w.Write(")")
}

// claimsCheck compares what it has locked, as ledgerCheck does. It takes no turn: only the workers with
// these claims share the lock, so that no crowd of them holds off a takeover for ever.
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

// claimsFirst locks the rows before the statement's own are read, as the check is evaluated once; so it doesn't
// matter whether the statement changes them.
func claimsFirst(w guard.Writer) {
	if w.AsksAlone() {
		claimsCheck(w)
		return
	}
	lo, _ := w.Tokens()
	w.Write("(SELECT newest FROM ")
	w.Item(lo)
	w.Write(")")
}

// claimsTail: an offset is evaluated first, and NULL is none.
func claimsTail(w guard.Writer) {
	lo, _ := w.Tokens()
	w.Write(" OFFSET (SELECT CASE WHEN NOT newest THEN 0 END FROM ")
	w.Item(lo)
	w.Write(")")
}
