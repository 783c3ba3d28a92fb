package session

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Dialect holds the queries for the facts of one kind of database.
type Dialect struct {
	Text sqltext.Dialect

	// Canary is a statement that must throw the mark, by [Raising], in the shape of a guard, and with facts after the
	// mark. It reads none of the application's tables, and takes no lock. If an error ends its transaction, Canary
	// throws in an open transaction only if inTx is set.
	Canary func(w *Wanted, inTx bool) string

	// ReadProof reads the facts after the mark.
	ReadProof func(w *Wanted, detail string) error

	// Settings is a query for the facts of the server and its session that aren't in the proof; empty for none.
	// Questions returns further queries for wanted facts that aren't in the proof; none if no fact is missing.
	Settings  string
	Questions func(w *Wanted) []string

	// Uncut is the query Settings in another form, whose rows no setting of the session limits. It is sent too if the
	// response to Settings lacks rows: Questions sets Wanted.Cut, and Read clears it at a row that shows the limit.
	Uncut string

	// Read reads a row of a result of Settings, Uncut or Questions.
	Read func(w *Wanted, row []string)

	// Strings is a query for the session's reading of string literals, and ReadStrings reads the result; empty if the
	// facts have the reading.
	Strings     string
	ReadStrings func(rows [][]string) lex.Escapes

	// Unique holds the queries for a table's unique keys; nil if a guard doesn't use them.
	Unique *Unique

	// Columns returns a query for the names of a table's columns and their types. Narrow reports whether a column of a
	// type can't store every token, so that it matters whether the session Clips; nil if no session clips.
	Columns func(Name) string
	Narrow  func(columnType string) bool

	// Unalterable is a query for the remedy if a relation lacks a column that ALTER TABLE can't add, as a virtual
	// table's. It returns no row for another relation. It is nil if all relations can be altered.
	Unalterable func(Name) string

	// NoInteger is a query for the type of a column if the type isn't an integer's; no row for an integer column. It is
	// nil if a guard throws an error for such a column.
	NoInteger func(table Name, column string) string

	// Prepared is a query for the names and texts of the session's prepared statements, which SQL's EXECUTE runs by
	// name; empty where the server lists none.
	Prepared string

	// Version is a query for the server's version string.
	Version string

	// Standby is a boolean expression. It is true on a server that takes no writes and may lag behind the primary.
	Standby string

	// Others are servers with the same protocol but with different locks or isolation. Itself matches the version of
	// the database's own code, also if others package and host it; nil without a server. A version that Itself doesn't
	// match is refused by the name in the version.
	Others []Server
	Itself *regexp.Regexp

	ErrorEndsTx fact.Fact // an error ends its transaction
	HasSettings fact.Fact // a statement can change one of the facts
	HasCharset  fact.Fact // the connection's encoding is such a fact
	HasCounts   fact.Fact // a session may make each write return a row
}

// A Server is known by a word in its version or its comment, in small letters.
type Server struct{ Word, Name string }

// unlike returns the server's name, by its facts, if guards aren't known to hold on the server; else the empty string.
func (d *Dialect) unlike(f *Facts) string {
	for _, s := range d.Others {
		if s.Name == f.Known {
			return ""
		}
		for _, text := range []string{f.Version, f.Comment} {
			if strings.Contains(strings.ToLower(text), s.Word) {
				return s.Name
			}
		}
	}
	if d.Itself == nil || d.Itself.MatchString(f.Version) {
		return ""
	}
	return build(f.Version)
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

// Wanted is a request for facts, with the responses.
type Wanted struct {
	Server   bool
	Counts   bool   // whether writes return counts
	Home     string // the schema of the ledger, as in Wants
	Function bool
	Sealed   []Name // tables that may be sealed, and aren't known
	Read     Names  // tables with names that may stand for a view

	Unlogged bool // response: the server keeps no binary log
	Cut      bool // response: the session's settings may limit the rows of the response

	Proven bool // response: the proof has been read
	Facts  Facts
	Schema string       // the function's schema
	found  map[int]bool // indexes of the sealed tables
}

// FoundSeal records that the wanted table with this index is sealed.
func (w *Wanted) FoundSeal(index int) {
	if w.found == nil {
		w.found = make(map[int]bool)
	}
	w.found[index] = true
}

// EachSeal joins a query for each table that may be sealed, by the table's index; empty without tables.
func (w *Wanted) EachSeal(query func(index string, name Name) string) string {
	queries := make([]string, len(w.Sealed))
	for i, name := range w.Sealed {
		queries[i] = query(strconv.Itoa(i), name)
	}
	return strings.Join(queries, " UNION ALL ")
}

// A standby answers from replayed data, without an error. A proxy may send each statement to another server. So a query
// for a decision checks the answering server in the same statement.

// Front is the number of columns that Deciding adds at the front.
const Front = 3

// Deciding returns query with columns at the front: whether the answering server may lag behind the primary, whether
// query has a row, and a column that isn't NULL if query has a row. Without a row all further columns are NULL. The
// columns of query need different names. pgpool sends the result to the primary, because a standby expression may
// change its value.
func (d *Dialect) Deciding(query string) string {
	return sqltext.Whole(d.Text, "SELECT "+d.Standby+", d.found IS NOT NULL, d.* FROM (SELECT 1 AS one) AS s "+
		"LEFT JOIN (SELECT 1 AS found, q.* FROM ("+query+") AS q) AS d ON 1 = 1")
}
