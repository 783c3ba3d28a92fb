package postgres

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Session has the queries of a PostgreSQL server's capabilities.
//
// HasSettings is No: the only such setting, about backslashes, is queried before each statement that depends on it.
var Session = &session.Dialect{
	Text:   Text,
	Canary: canary, ReadProbe: readProbe,
	Queries: queries, Read: readRow,
	Strings: readsStrings, ReadStrings: readStrings,
	Prepared: "SELECT name, statement FROM pg_catalog.pg_prepared_statements",
	Version:  "SELECT pg_catalog.version()",
	Standby:  standby,
	Others:   otherServers, Itself: itself,

	ErrorEndsTx: fact.Yes,
	HasSettings: fact.No,
	HasCharset:  fact.No,
	HasCounts:   fact.No,

	NoInteger: noInteger,
}

// noInteger resolves the table's name as a statement does.
func noInteger(table session.Name, column string) string {
	name := sqltext.QuoteIn(Text, table.Schema, table.Table)
	return "SELECT pg_catalog.format_type(a.atttypid, a.atttypmod) FROM pg_catalog.pg_attribute AS a " +
		"WHERE a.attrelid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(" + Text.Text(name) +
		")::pg_catalog.oid AND a.attname OPERATOR(pg_catalog.=) " + Text.Text(column) +
		"::pg_catalog.name AND pg_catalog.format_type(a.atttypid, a.atttypmod) OPERATOR(pg_catalog.<>) " +
		"ALL (ARRAY['bigint', 'integer', 'smallint'])"
}

const standby = "pg_catalog.pg_is_in_recovery()"

var otherServers = []session.Server{
	{Word: "cockroachdb", Name: "CockroachDB"}, {Word: "-yb-", Name: "YugabyteDB"},
	{Word: "redshift", Name: "Redshift"}, {Word: "greenplum", Name: "Greenplum"},
	{Word: "cloudberry", Name: "Cloudberry"}, {Word: "materialize", Name: "Materialize"},
	{Word: "risingwave", Name: "RisingWave"}, {Word: "cratedb", Name: "CrateDB"},
	{Word: "opengauss", Name: "openGauss"}, {Word: "gaussdb", Name: "GaussDB"},
	{Word: "postgres-xl", Name: "Postgres-XL"}, {Word: "postgres-xc", Name: "Postgres-XC"},
	{Word: "polardb", Name: "PolarDB"}, {Word: "questdb", Name: "QuestDB"},
	{Word: "citus", Name: "Citus"}, {Word: "pgedge", Name: "pgEdge"}, {Word: "spock", Name: "pgEdge"},
	{Word: "bdr", Name: "BDR"},
}

// spreading lists the extensions with which several servers write to the same tables.
const spreading = "'citus', 'spock', 'bdr'"

// itself matches the whole version string of a PostgreSQL build. After the number stands the packager: a distribution
// with its package's version, or for Neon a revision.
var itself = regexp.MustCompile(`^PostgreSQL [0-9.]+(devel|alpha[0-9]+|beta[0-9]+|rc[0-9]+)?` +
	`( \(([A-Za-z]+ [0-9][^ ()]*-[^ ()]*|Homebrew|Postgres\.app|[0-9a-f]{7,40})\)` +
	`| - Percona (Distribution|Server for PostgreSQL [0-9.]+))?( on [^ ,]+)?, compiled by .+, (32|64)-bit$`)

// canary returns a statement that throws an error with all capabilities in its text, which PostgreSQL quotes in full.
// It ends no transaction that inTx doesn't report: there now differs from the statement's start, so it throws no error.
func canary(w *session.Wanted, inTx bool) string {
	unless := ""
	if !inTx {
		unless = " WHEN pg_catalog.timestamptz_ne(pg_catalog.now(), pg_catalog.statement_timestamp()) THEN false"
	}
	return "SELECT 1 FROM (SELECT 1 AS n) AS q WHERE CASE WHEN pg_catalog.int8le(q.n, 0) THEN true" + unless +
		" ELSE " + session.Throwing(Text, serverCapabilities(w)) + " IS NOT NULL END"
}

// serverCapabilities is an expression of type json.
func serverCapabilities(w *session.Wanted) string {
	function, sealed := "NULL", "NULL"
	if w.Function {
		function = "(" + sqltext.Place(Text, w.LedgerSchema, FindLedgerFunction) + ")"
	}
	if seals := findSeals(w); seals != "" {
		sealed = "(SELECT pg_catalog.json_agg(s.n) FROM (" + seals + ") AS s)"
	}
	return "pg_catalog.json_build_object('version', pg_catalog.version(), 'extension', (SELECT " +
		"pg_catalog.max(e.extname::pg_catalog.text) FROM pg_catalog.pg_extension AS e " +
		"WHERE e.extname OPERATOR(pg_catalog.=) ANY (ARRAY[" + spreading + "])), 'standby', " + standby +
		", 'function', " + function + ", 'sealed', " + sealed + ", 'views', " + findViews(&w.Read) + ")"
}

// findViews returns an expression of type json: the writable views and foreign tables with these names, without other
// sessions' temporary views. No operator is looked up in the search_path.
func findViews(names *session.Names) string {
	if !names.Any() {
		return "NULL"
	}
	named := "n.nspname OPERATOR(pg_catalog.<>) ALL ('{pg_catalog,information_schema}'::pg_catalog.name[])"
	if !names.All {
		list := make([]string, len(names.List))
		for i, name := range names.List {
			list[i] = Text.Text(name)
		}
		named = "c.relname OPERATOR(pg_catalog.=) ANY (ARRAY[" + strings.Join(list, ", ") + "]::pg_catalog.name[])"
	}
	const own = "pg_catalog.oideq(n.oid, pg_catalog.pg_my_temp_schema())"
	return "(SELECT pg_catalog.json_agg(pg_catalog.json_build_object('schema', CASE WHEN " + own + " THEN 'pg_temp' " +
		"ELSE n.nspname::pg_catalog.text END, 'name', c.relname, 'visible', pg_catalog.pg_table_is_visible(c.oid))) " +
		"FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON pg_catalog.oideq(n.oid, c.relnamespace) " +
		"WHERE (pg_catalog.chareq(c.relkind, 'v') OR pg_catalog.chareq(c.relkind, 'f')) AND " + named +
		" AND (NOT pg_catalog.starts_with(n.nspname::pg_catalog.text, 'pg_temp_') OR " + own + "))"
}

func findSeals(w *session.Wanted) string {
	return w.EachSeal(func(index string, name session.Name) string {
		table := sqltext.QuoteIn(Text, name.Schema, name.Table)
		return Qualified("SELECT " + index + " AS n FROM pg_catalog.pg_trigger AS g" +
			" WHERE g.tgrelid = pg_catalog.to_regclass(" + Text.Text(table) + ")" +
			" AND g.tgname = '" + sqltext.SealTrigger + "' AND g.tgenabled IN ('O', 'A')")
	})
}

func readProbe(w *session.Wanted, detail string) error {
	var facts struct {
		Version, Extension, Function string
		Standby                      bool
		Sealed                       []int
		Views                        []session.View
	}
	if err := json.NewDecoder(strings.NewReader(detail)).Decode(&facts); err != nil {
		return session.ErrUnreadable
	}
	w.Capabilities.Version, w.Capabilities.Comment, w.Capabilities.Standby = facts.Version,
		facts.Extension, facts.Standby
	w.Capabilities.Views = facts.Views
	w.Schema = facts.Function
	for _, i := range facts.Sealed {
		w.FoundSeal(i)
	}
	return nil
}

const readsStrings = "SELECT pg_catalog.current_setting('standard_conforming_strings'), " +
	"pg_catalog.current_setting('client_encoding')"

func readStrings(rows [][]string) lex.Escapes {
	if len(rows) != 1 || len(rows[0]) != 2 {
		return lex.EscapesUnknown
	}
	reading := lex.EscapesUnknown
	switch rows[0][0] {
	case "on":
		reading = lex.EscapesNone
	case "off":
		reading = lex.EscapesAll
	}
	if encoding := rows[0][1]; encoding != "UTF8" && encoding != "SQL_ASCII" {
		reading |= lex.AnyEncoding
	}
	return reading
}

func queries(w *session.Wanted) []string {
	if w.Probed || !w.Server && !w.Function && len(w.Sealed) == 0 {
		return nil
	}
	return []string{"SELECT " + serverCapabilities(w)}
}

func readRow(w *session.Wanted, row []string) {
	if len(row) > 0 {
		_ = readProbe(w, row[0])
	}
}
