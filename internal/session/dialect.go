package session

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Dialect holds the queries for the [Capabilities] of one kind of database: of its servers, and of their sessions.
type Dialect struct {
	Text sqltext.Dialect

	// Canary returns a statement, the canary, that makes the server throw the error of [Throwing], in the shape of a
	// guard. The error's text contains the wanted facts. The canary reads none of the application's tables, and takes
	// no lock. If in this database an error ends the transaction, the canary throws the error in an open transaction
	// only if inTx is set.
	Canary func(w *Wanted, inTx bool) string

	// ReadProbe reads the facts from the canary's error. detail is the error's text after [Throwing]'s marker.
	ReadProbe func(w *Wanted, detail string) error

	// Settings is a query for the facts about the server and its session that the canary's error doesn't contain; it is
	// empty if there are no such facts. Queries returns further queries for wanted facts that the canary's error
	// doesn't contain; it returns none if no such fact is wanted.
	Settings string
	Queries  func(w *Wanted) []string

	// Uncut is the query Settings with a LIMIT, so that no setting of the session limits its rows. It is sent after
	// Settings if that response may lack rows: Queries sets Capabilities.Cut, and Read clears Cut if a row shows that
	// the session's limit is high.
	Uncut string

	// Read stores the facts of a row, from the result of Settings, Uncut or one of Queries, in w.
	Read func(w *Wanted, row []string)

	// Strings is a query for the settings that decide how the session's string literals are read, and ReadStrings reads
	// its result. Strings is empty if Settings returns these settings, or if there are none.
	Strings     string
	ReadStrings func(rows [][]string) lex.Escapes

	// Unique holds the queries for a table's unique keys; nil if no guard for this database uses unique keys.
	Unique *Unique

	// Columns returns a query for the names of a table's columns and their types. cut is Capabilities.Cut. Narrow
	// reports whether a column of a type can't store every token, so that it matters whether the session clips numbers
	// (Capabilities.Clips). Both are nil if no session of this database clips numbers.
	Columns func(table Name, cut bool) string
	Narrow  func(columnType string) bool

	// Unalterable returns a query for what to do if a relation lacks a column that ALTER TABLE can't add, because the
	// relation is a virtual table, for example. The query has no row for any other relation. Unalterable is nil if
	// ALTER TABLE can add columns to all relations.
	Unalterable func(Name) string

	// NoInteger returns a query for the type of a column that isn't of an integer type. The query has no row for an
	// integer column. NoInteger is nil if a guard throws an error for a column that isn't an integer.
	NoInteger func(table Name, column string) string

	// Prepared is a query for the names and texts of the session's prepared statements, which SQL's EXECUTE runs by
	// name. It is empty if the server doesn't list them.
	Prepared string

	// Version is a query for the server's version string. If ReadVersion isn't nil, Version is also sent before the
	// canary, and ReadVersion stores the facts of its row: a proxy in front of the server returns the proxy's version,
	// while the server executes the canary.
	Version     string
	ReadVersion func(f *Capabilities, row []string)

	// OpenTx is a query that returns 1 if a transaction is open, else 0, on a server with Capabilities.LocksAlone.
	// BeginTx begins a transaction there in which a row lock makes others wait.
	OpenTx, BeginTx string

	// Standby is a boolean SQL expression that is true on a server that takes no writes and may lag behind the primary.
	Standby string

	// Others are servers with the database's protocol but with different locks or isolation. Itself is a pattern for
	// the version string of the database's own code, even if other vendors package or host the server; it is nil if the
	// database has no server, as SQLite. Guards aren't known to hold on a server in Others, nor on a server with a
	// version that Itself doesn't match. The error then names the server as Others does, or by a product name found in
	// the version string.
	Others []Server
	Itself *regexp.Regexp

	ErrorEndsTx fact.Fact // an error in a transaction ends the transaction
	HasSettings fact.Fact // a statement can change one of the facts about its session
	HasCharset  fact.Fact // the connection's encoding is such a fact
	HasCounts   fact.Fact // a session may make each write return a row
}

// A Server is a server that is recognised by a word, in small letters, in its version string or in its version comment.
type Server struct{ Word, Name string }

// unlike returns the name of the server if guards aren't known to hold on it; else the empty string.
func (d *Dialect) unlike(f *Capabilities) string {
	for _, s := range d.Others {
		if s.Name == f.Known {
			return ""
		}
		for _, text := range []string{f.Version, f.Front, f.Comment} {
			if strings.Contains(strings.ToLower(text), s.Word) {
				return s.Name
			}
		}
	}
	for _, version := range []string{f.Version, cmp.Or(f.Front, f.Version)} {
		if d.Itself != nil && !d.Itself.MatchString(version) {
			return build(version)
		}
	}
	return ""
}

// build returns the name of a derived product in a version string, as in "PostgreSQL 18.4 (IvorySQL 5.4) on …" and
// "8.0.30-Other-v1"; the whole string if it has no name.
func build(version string) string {
	made, _, _ := strings.Cut(version, " on ")
	made, _, _ = strings.Cut(made, ", compiled by ")
	for _, m := range buildName.FindAllStringSubmatch(made, -1) {
		if m[1] != "PostgreSQL" {
			return m[1]
		}
	}
	return version
}

var buildName = regexp.MustCompile(`(?:^|[ (-])([A-Za-z][A-Za-z_]*[A-Za-z])`)

// Wanted is a request for facts. Its fields marked as responses hold the results.
type Wanted struct {
	Server       bool   // the Capabilities are wanted
	Counts       bool   // the fact ReturnsCounts is wanted
	LedgerSchema string // the schema of the ledger, as Schema in Wants
	Function     bool   // the schema of the ledger's function is wanted
	Sealed       []Name // tables that may be sealed; whether they are is unknown
	Read         Names  // tables with names that may stand for a view

	Unlogged bool // response: the server keeps no binary log

	Probed       bool         // response: the server threw the canary's error, and ReadProbe has read the facts in it
	Capabilities Capabilities // response, if Server is set
	Schema       string       // response: the schema of the ledger's function
	found        map[int]bool // response: indexes in Sealed of the tables that are sealed
}

// FoundSeal records that the table with this index in Sealed is sealed.
func (w *Wanted) FoundSeal(index int) {
	if w.found == nil {
		w.found = make(map[int]bool)
	}
	w.found[index] = true
}

// EachSeal joins, by UNION ALL, a query for each table in Sealed. query gets the table's index as SQL. The result is
// empty without tables.
func (w *Wanted) EachSeal(query func(index string, name Name) string) string {
	queries := make([]string, len(w.Sealed))
	for i, name := range w.Sealed {
		queries[i] = query(strconv.Itoa(i), name)
	}
	return strings.Join(queries, " UNION ALL ")
}

// A query on a standby succeeds, but its result may be old, and a proxy may send each statement to another server. So a
// query that a write depends on must check, in the same statement, whether a standby executes it.

// Front is the number of columns that Deciding puts before the columns of its query.
const Front = 3

// Deciding returns query with three more columns at the front: whether the server that executed it may lag behind the
// primary, whether query has a row, and a column that isn't NULL if query has a row. If query has no row, all further
// columns are NULL. The columns of query must have different names. pgpool sends the query to the primary, because the
// function in the expression Standby is volatile.
func (d *Dialect) Deciding(query string) string {
	return sqltext.Whole(d.Text, "SELECT "+d.Standby+", d.found IS NOT NULL, d.* FROM (SELECT 1 AS one) AS s "+
		"LEFT JOIN (SELECT 1 AS found, q.* FROM ("+query+") AS q) AS d ON 1 = 1")
}
