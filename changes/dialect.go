package changes

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/seal"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A dialect holds the statements of one database, with these placeholders:
//
//	{table} {'table'}   the counted table's name with its schema, as an SQL identifier and as a constant
//	{name} {schema}     its two parts as constants; {schema} is DATABASE() if the caller gave no schema
//	{key}               the name as the database folds it, as a constant; {own} has the counts under it
//	{own}               the table with the counts, fencing_changes
//	{insert} {update} {delete}        the names of the triggers, as SQL identifiers
//	{'insert'} {'update'} {'delete'}  and as constants
type dialect struct {
	sqltext.Dialect
	names sqlfence.Dialect

	count         string         // a query for whether the table is counted, and its count or NULL
	obstacles     string         // a query for reasons why changes fire no triggers; empty if there can be none
	install       []string       // statements that create the missing table of counts and triggers
	before        []string       // statements to send before install
	after         []string       // statements to send after install, even if install has failed
	inTableSchema bool           // the counts are in the table's schema, not in the ledger's schema
	attached      bool           // a table in another schema than main can't be counted
	reads         *sql.TxOptions // options of the transaction for count; nil if count needs no transaction
	end           string         // a statement that ends an open transaction before count's transaction begins

	// group is a query for variables that show a server on which the triggers that count changes would fail: TiDB, or one
	// of several writing servers. servers returns why a variable with this value forbids them; empty if it doesn't.
	group   string
	servers func(variable, value string) string
}

var dialects = dialectopt.For(&postgres, &sqlite, &mysql)

// A table identifies a table with triggers that count its changes.
type table struct {
	written      string // the name as the caller has written it
	schema, name string // the names to send, as SQL; schema may be empty
	key          string // the name as the database compares it
}

var errNone = errors.New("no table")

func (c *Counter) named(tables []string) (named []table, err error) {
	err = errNone
	for _, given := range tables {
		t := table{written: given}
		if t.schema, t.name, err = lang.SpellName(c.dialect.names, given); err != nil {
			break
		}
		if _, t.key, err = lang.ParseName(c.dialect.names, given); err != nil {
			break
		}
		if c.dialect.attached && t.schema != "" && !strings.EqualFold(t.schema, "main") {
			err = fmt.Errorf("table %s is in an attached file, and its triggers can't write to another file; open "+
				"that file as main", given)
			break
		}
		named = append(named, t)
	}
	if err != nil {
		return nil, dialectopt.Invalid("changes", err)
	}
	return named, nil
}

// text writes a text of the dialect for a table.
func (d *dialect) text(c *Counter, t table, text string) string {
	table, schema, home := d.Quote(t.name), "DATABASE()", c.schema
	switch {
	case d.inTableSchema:
		home = t.schema
	case d.attached:
		home = "" // a trigger names no file
	}
	of := ""
	if t.schema != "" {
		of, schema = d.Quote(t.schema)+".", d.Text(t.schema)
	}
	pieces := []string{
		"{table}", of + table, "{'table'}", d.Text(of + table), "{name}", d.Text(t.name), "{schema}", schema,
		"{key}", d.Text(t.key), "{own}", sqltext.ChangesTable,
	}
	for _, event := range []string{"insert", "update", "delete"} {
		trigger := seal.Own("sqlfence_changes_"+event+"_v1:", t.key)
		pieces = append(pieces, "{"+event+"}", of+d.Quote(trigger), "{'"+event+"'}", d.Text(trigger))
	}
	return sqltext.Place(d.Dialect, home, strings.NewReplacer(pieces...).Replace(text))
}
