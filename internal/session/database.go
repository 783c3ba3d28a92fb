package session

import (
	"sync"
	"sync/atomic"
)

// A Database is what the connections of one pool know together: what is there in the database. It
// is safe for concurrent use, and the zero value knows nothing.
type Database struct {
	seals      sync.Map    // of Name to whether the table is sealed
	sealsKnown atomic.Bool // of all tables
	unique     sync.Map    // of Name to the table's *UniqueKeys
	wide       sync.Map    // of Name, of a table without a narrow column

	function atomic.Pointer[string] // the schema of the ledger's function; nil if it isn't known to be there
	last     atomic.Pointer[string] // where it was known to be last; nil if it never was

	home home
}

// Function returns the schema of the function that asks the ledger; empty if it isn't known to
// be there.
func (d *Database) Function() string {
	if schema := d.function.Load(); schema != nil {
		return *schema
	}
	return ""
}

// IsSealed reports whether a table is known to be sealed. In doubt it isn't: a sealed table
// refuses what is written to another, but one without a seal would store a negative mark.
func (d *Database) IsSealed(name Name) bool {
	sealed, known := d.seals.Load(name)
	return known && sealed.(bool)
}

// Seal notes whether a table is sealed.
func (d *Database) Seal(name Name, sealed bool) { d.seals.Store(name, sealed) }

// learn notes what a connection was answered.
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
