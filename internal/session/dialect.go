package session

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Dialect is how the server of one database is asked.
type Dialect struct {
	Text sqltext.Dialect

	// Canary is a statement that has to raise the mark, by [Raising], in the shape of a guard, and with facts
	// behind it. It reads no table of the application's, and takes no lock. Where an error ends the
	// transaction that it occurs in, it raises in an open one only if inTx is set.
	Canary func(w *Wanted, inTx bool) string

	// ReadProof reads what stands behind the mark.
	ReadProof func(w *Wanted, detail string) error

	// Settings is a query for the facts of the server and its session that aren't in the proof; empty for none.
	// Questions returns others for what is wanted and isn't in the proof; none where there is nothing to ask.
	Settings  string
	Questions func(w *Wanted) []string

	// Read reads a row of their answers.
	Read func(w *Wanted, row []string)

	// Strings is a query for how the session has strings read, and ReadStrings reads its answer, where that isn't among
	// the facts.
	Strings     string
	ReadStrings func(rows [][]string) lex.Escapes

	// Unique is how a statement asks for a table's unique keys; nil where it can't.
	Unique *Unique

	// Columns returns a query for the names of a table's columns and their types. Narrow reports whether a column of a
	// type can't store each token, so that it matters whether the session Clips; nil where none ever does.
	Columns func(Name) string
	Narrow  func(columnType string) bool

	// Unalterable is a query for what to do where a relation lacks a column and is none that ALTER TABLE adds one to,
	// such as a virtual table; it has no row for another one. It is nil where there are none.
	Unalterable func(Name) string

	// NoInteger is a query for the type of a column that isn't an integer's; it has no row for one that is. It is nil
	// where a guard raises for such a column.
	NoInteger func(table Name, column string) string

	// Prepared is a query for the names and texts of the session's prepared statements, which SQL's EXECUTE runs by
	// name; empty where the server lists none.
	Prepared string

	// Version is a query for what the server says of itself.
	Version string

	// Standby is an expression: whether the server that evaluates it takes no writes, and may be behind the one
	// that does.
	Standby string

	// Others are servers that speak the same protocol, and have locks or an isolation of their own. Itself is how
	// the database's own code says its version, also as others package and host it; nil where it is no server. What
	// says another one is refused by the name in it.
	Others []Server
	Itself *regexp.Regexp

	ErrorEndsTx fact.Fact // an error ends the transaction that it occurs in
	HasSettings fact.Fact // a statement can change one of the facts
	HasCharset  fact.Fact // the connection's encoding is one of these
	HasCounts   fact.Fact // a session may have each write return a row
}

// A Server is known by a word in its version or its comment, in small letters.
type Server struct{ Word, Name string }

// unlike returns the name of the server, by its facts, if guards aren't known to hold on it; else the
// empty text.
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

// build returns the name that a version has for the build of another's code: "PostgreSQL 18.4 (IvorySQL 5.4) on
// …" and "8.0.30-Other-v1"; all of it if it has none.
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

// Wanted is what is asked for, and what was answered.
type Wanted struct {
	Server   bool
	Counts   bool   // whether writes return them, too
	Home     string // the schema of the ledger, as in Wants
	Function bool
	Sealed   []Name // of those that may be, what nothing is known about
	Read     Names  // of what may be a view

	Unlogged bool // just now: the server keeps no binary log

	Proven bool // just now: the proof has been read
	Facts  Facts
	Schema string       // of the function
	found  map[int]bool // which of the tables are sealed
}

// FoundSeal notes that the table with this index, among those that were asked for, is sealed.
func (w *Wanted) FoundSeal(index int) {
	if w.found == nil {
		w.found = make(map[int]bool)
	}
	w.found[index] = true
}

// EachSeal returns a query with a query for each table that may be sealed, by its index; empty for none.
func (w *Wanted) EachSeal(query func(index string, name Name) string) string {
	queries := make([]string, len(w.Sealed))
	for i, name := range w.Sealed {
		queries[i] = query(strconv.Itoa(i), name)
	}
	return strings.Join(queries, " UNION ALL ")
}

// A standby answers by what it has replayed so far, without an error. Behind a proxy each statement may be another
// server's. So what reads in order to decide asks in the same statement who answers.

// Front is how many columns Deciding puts in front.
const Front = 3

// Deciding returns a query with columns in front: whether the server that has answered may be behind the one that takes
// writes; whether the query has a row, without which all others are NULL; and one that isn't NULL if it has. Its own
// columns need different names. pgpool sends such a query to the primary, as what asks for a standby may change
// from one time to the next.
func (d *Dialect) Deciding(query string) string {
	return sqltext.Whole(d.Text, "SELECT "+d.Standby+", d.found IS NOT NULL, d.* FROM (SELECT 1 AS one) AS s "+
		"LEFT JOIN (SELECT 1 AS found, q.* FROM ("+query+") AS q) AS d ON 1 = 1")
}
