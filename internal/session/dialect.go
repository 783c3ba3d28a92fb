package session

import (
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Dialect is how the server of one database is asked: [Postgres], [SQLite] and [MySQL].
type Dialect interface {
	text() sqltext.Dialect

	// canary is a statement that has to raise the mark, in the shape of a guard, and with facts
	// behind it. It reads no table of the application's, and takes no lock. Where an error ends the
	// transaction that it occurs in, it raises in an open one only if inTx is set.
	canary(w *wanted, inTx bool) string

	// readProof reads what stands behind the mark.
	readProof(w *wanted, detail string) error

	// questions returns queries for what is wanted and isn't in the proof; none where there is nothing
	// to ask.
	questions(w *wanted) []string

	// read reads a row of their answers.
	read(w *wanted, row []string)

	// version is a query for what the server says of itself.
	version() string

	// unlike returns the name of the server, by its facts, if guards aren't known to hold on it; else the
	// empty text.
	unlike(f *Facts) string

	// errorEndsTx reports whether an error ends the transaction that it occurs in.
	errorEndsTx() bool

	// hasSettings reports whether a statement can change one of the facts.
	hasSettings() bool

	// hasCharset reports whether the connection's encoding is one of these.
	hasCharset() bool

	// hasCounts reports whether a session may have each write return a row.
	hasCounts() bool

	// asksInTx reports whether seals are asked for in a transaction, too. Where an error doesn't end it, a
	// refusal has them asked for as well.
	asksInTx() bool
}

// wanted is what is asked for, and what was answered.
type wanted struct {
	server   bool
	counts   bool   // whether writes return them, too
	home     string // the schema of the ledger, as in Wants
	function bool
	seals    bool   // of all tables; else of none
	sealed   []Name // those that nothing is known about

	proven bool // just now: the proof has been read
	facts  Facts
	schema string       // of the function
	found  map[int]bool // which of the tables are sealed
}

// foundSeal notes that the table with this index, among those that were asked for, is sealed.
func (w *wanted) foundSeal(index int) {
	if w.found == nil {
		w.found = make(map[int]bool)
	}
	w.found[index] = true
}

// eachSeal returns a query with a query for each table that may be sealed, by its index; empty for none.
func (w *wanted) eachSeal(query func(index string, name Name) string) string {
	queries := make([]string, len(w.sealed))
	for i, name := range w.sealed {
		queries[i] = query(strconv.Itoa(i), name)
	}
	return strings.Join(queries, " UNION ALL ")
}

// A namedServer is known by a word in what it says of itself.
type namedServer struct{ word, name string }

// named returns the name of the first of the servers that has its word in one of the texts.
func named(servers []namedServer, texts ...string) string {
	for _, s := range servers {
		for _, text := range texts {
			if strings.Contains(strings.ToLower(text), s.word) {
				return s.name
			}
		}
	}
	return ""
}
