package rowlock

import (
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence/internal/editlock"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// columns are the quoted names.
type columns struct{ serial, by, since, expiry string }

// lockFragments are the pieces of statements about a lock in the columns c.
func lockFragments(d *spelling, c columns) sqltext.Fragments {
	holder := d.Convert(c.by, sqltext.Text)
	return sqltext.Fragments{
		"serial": sqltext.Raw(c.serial), "by": sqltext.Raw(c.by), "since": sqltext.Raw(c.since),
		"expiry": sqltext.Raw(c.expiry),

		"holder": sqltext.Raw(holder),
		"stored": sqltext.Func(d.stored),

		// Conditions, never NULL. Free: no holder is named. Live: one is, and the lock hasn't lapsed. Mine: {user} is
		// named. Open: {user} may take the lock.
		"free": sqltext.Raw(editlock.NoHolder(c.by, d.binary(holder), d.Text(""), d.Capabilities().BuiltIn)),
		"live": sqltext.SQL("(NOT {free} AND {expiry} IS NOT NULL AND {expiry} > {now})"),
		"mine": sqltext.SQL("({by} IS NOT NULL AND " + d.same("{by}", "{user}") + ")"),
		"open": sqltext.SQL("({mine} OR {free} OR {expiry} IS NULL OR {expiry} <= {now})"),

		"version":   sqltext.SQL(d.version),
		"versioned": sqltext.SQL(d.versioned),
		"unchanged": sqltext.SQL("{serial} = {bigint {expected}}"),

		// The columns of a rowState but for granted.
		"state": sqltext.SQL("{version}, {holder}, {micros {since}}, {micros {expiry}}, {live}"),
	}
}

// SET lists for a lock's columns.
const (
	// setHolder is for a user who takes or renews the lock for {ttl}. {since} stays if the user already holds the lock.
	// {by} is assigned last, because in MySQL {mine} would read its new value in the assignments after it.
	setHolder = "{since} = CASE WHEN {mine} AND {live} THEN COALESCE({since}, {now}) ELSE {now} END, " + setExpiry +
		", {by} = {user}"

	setNewHolder = "{by} = {user}, {since} = {now}, " + setExpiry

	setFree = "{by} = {noholder}, {since} = {now}, {expiry} = NULL"

	setExpiry = "{expiry} = {after {bigint {ttl}}}"
)

func (t *Table) newFragments() sqltext.Fragments {
	p := lockFragments(&t.dialect.spelling, t.columns)
	p["table"] = sqltext.Raw(t.quoted)
	p["tablename"] = sqltext.Value(t.name)
	p["noholder"] = sqltext.Value(t.noHolder)
	p["keytext"] = sqltext.SQL(t.dialect.keyText)
	p["keycolumns"] = sqltext.Raw(strings.Join(t.keys, ", "))

	// {row} finds the row by the values {key0}, {key1} ... of its key.
	row, names := make([]string, len(t.keys)), make([]string, len(t.keys))
	for i := range t.keys {
		p[fmt.Sprint("column", i)] = sqltext.Raw(t.keys[i])
		p[fmt.Sprint("keyname", i)] = sqltext.Value(t.keyNames[i])
		row[i] = fmt.Sprintf("{column%d} %s {key%[1]d}", i, t.dialect.equals)
		names[i] = fmt.Sprintf("{keyname%d}", i)
	}
	p["row"] = sqltext.SQL(strings.Join(row, " AND "))
	p["keynames"] = sqltext.SQL(strings.Join(names, ", "))

	// The table as a value, for the catalogue's functions.
	p["regclass"] = sqltext.Value(t.quoted)
	p["bare"] = sqltext.Value(t.table)
	p["tableargs"] = sqltext.SQL("{bare}")
	p["schema"] = sqltext.Value(nil)
	if t.schema != "" {
		p["schema"] = sqltext.Value(t.schema)
		p["tableargs"] = sqltext.SQL("{bare}, {schema}")
	}
	return p
}

// render writes a statement with t's pieces, the values of a row's key, and others.
func (t *Table) render(text string, key []any, others sqltext.Fragments) (string, []any) {
	return sqltext.Render(t.dialect, text, others, keyFragments(key), t.fragments)
}

func (t *Table) userFragment(id driver.Value) sqltext.Fragment {
	return sqltext.Value(t.dialect.user(id))
}

func keyFragments(key []any) sqltext.Fragments {
	p := make(sqltext.Fragments, len(key))
	for i, value := range key {
		p[fmt.Sprint("key", i)] = sqltext.Value(value)
	}
	return p
}
