package session

import (
	"sync"
	"sync/atomic"
)

// A Database caches facts about the objects in a database for the connections of one pool. It is safe for concurrent
// use. The zero value is empty.
type Database struct {
	seals      sync.Map    // maps a Name to whether the table is sealed
	sealsKnown atomic.Bool // seals has all tables that may be sealed
	unique     sync.Map    // maps a Name to the table's *UniqueKeys
	wide       sync.Map    // set of the Names of tables without a column that is too narrow for a token

	function atomic.Pointer[string] // schema of the ledger's function; nil if unknown
	last     atomic.Pointer[string] // last known schema of the function; nil if no schema was known

	poolSchema poolSchema
}

// Function returns the schema of the function that checks the ledger; empty if unknown.
func (d *Database) Function() string {
	if schema := d.function.Load(); schema != nil {
		return *schema
	}
	return ""
}

// IsSealed reports whether a table is known to be sealed. In doubt it returns false: a seal refuses a write without a
// token, but a table without a seal would store the negative token that the guard assigns for a seal.
func (d *Database) IsSealed(name Name) bool {
	sealed, known := d.seals.Load(name)
	return known && sealed.(bool)
}

// Seal records whether a table is sealed.
func (d *Database) Seal(name Name, sealed bool) { d.seals.Store(name, sealed) }

// learn stores the facts about the database that a connection has queried.
func (d *Database) learn(w *Wanted) {
	if w.Function && w.Schema != "" {
		d.function.Store(&w.Schema)
		d.last.Store(&w.Schema)
	}
	for i, name := range w.Sealed {
		d.Seal(name, w.found[i])
	}
	d.sealsKnown.Store(true)
}
