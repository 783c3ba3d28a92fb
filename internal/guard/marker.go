package guard

// A Kind is the kind of a guard's reason for throwing an error.
type Kind string

// The kinds, as written in a guard's error.
const (
	Stale       Kind = "stale"
	NotNewest   Kind = "ledger"   // the ledger's newest token, or the claim of a claimed row, is older or newer
	NotInteger  Kind = "integer"  // PostgreSQL: the fence column, or the ledger's column token, has no integer type
	OutOfScope  Kind = "scope"    // no token covers the row's key
	UnknownName Kind = "unknown"  // the ledger has no row for the token's name, or a claim's row is gone
	Conflict    Kind = "conflict" // the row is at another serial
	Gone        Kind = "gone"     // the row doesn't exist
	Locked      Kind = "locked"   // another user holds the row's lock
	NotSerial   Kind = "serial"   // the serial or claim column holds no integer, or the highest one
	Assigned    Kind = "assigned" // the statement assigned a serial or claim that doesn't increase the row's
	Required    Kind = "required" // the statement would update a row without a serial
	Reshaped    Kind = "reshaped" // the table's unique keys have changed since the statement was built
)

// A Marker is the reason that a guard's error carries.
type Marker struct {
	Kind Kind
	// of Stale, NotNewest, OutOfScope and UnknownName: index among the tokens of all written tables,
	// in their order
	Token int
	Table int // of the other kinds: index among the written tables
	// of Stale: the row's newer value, or its claim; of NotNewest: the ledger's value, or the claim; of
	// Conflict and Assigned: the row's serial, or its claim
	Current int64
	RowGone bool   // of Stale: the row of the claim is gone
	Key     string // of OutOfScope: the key of the row
	By      string // of Locked: the holder's ID
	Since   int64  // of Locked: when the lock was taken, in microseconds of Unix time; 0 for unknown
	Expiry  int64  // of Locked: when the lock expires, in microseconds of Unix time
	Found   string // of NotSerial: the value of the serial or claim column, or its beginning
}
