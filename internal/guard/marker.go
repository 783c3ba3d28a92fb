package guard

// A Kind is the kind of a guard's reason for throwing an error.
type Kind string

// The kinds, as written in a guard's error.
const (
	Stale       Kind = "stale"
	NotNewest   Kind = "ledger"   // the token isn't the ledger's newest, or isn't the claim of a row to be claimed
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

// A Marker is what the text of a guard's error contains: the reason for the error, and the values that were compared.
type Marker struct {
	Kind Kind
	// Token is, for [Stale], [NotNewest], [OutOfScope] and [UnknownName], the index of the refused token among the
	// tokens of all written tables, in the tables' order.
	Token int
	// Table is for the other kinds: the index of the table among the written tables.
	Table int
	// Current is the stored number: for Stale the row's token or claim, for NotNewest the ledger's token or the claim
	// of a row to be claimed, for Conflict the row's serial, for Assigned the row's serial or claim.
	Current int64
	RowGone bool   // for Stale: the row with the claim is gone
	Key     string // for OutOfScope: the key of the row
	By      string // for Locked: the ID of the lock's holder
	Since   int64  // for Locked: when the lock was taken, in microseconds of Unix time; 0 if unknown
	Expiry  int64  // for Locked: when the lock expires, in microseconds of Unix time
	Found   string // for NotSerial: the value of the serial or claim column, or its beginning
}
