// Package fence connects the proof to a fence under test: a program, in any language, that reads a [Request] from each
// line of its standard input, and writes an [Answer] to a line of its standard output. The first request opens the
// database. A program may respond out of order if it accepts several requests at a time ([Program.Lanes]).
package fence

// What a request asks for. A fence that is judged as a stranger knows the first four.
const (
	Open    = "open"    // the database; with Setup also create what the fence needs there
	Acquire = "acquire" // take the lock Name, and a fence with it
	Write   = "write"   // write the rows of Steps with the fences of Tokens
	Release = "release" // give the lock Name back

	Extend = "extend" // live on, lock Name
	Issue  = "issue"  // the next token of Name
	Adopt  = "adopt"  // the foreign token in Tokens
	Claim  = "claim"  // take over the row of Steps
	Edit   = "edit"   // lock the row of Steps for the user
	Leave  = "leave"  // and unlock it
	Read   = "read"   // the row of Steps
)

// A Request is a line that a fence reads. Fields that its kind doesn't use are absent.
type Request struct {
	ID int64  `json:"id"` // unique in a storm; it is also the value to write
	Do string `json:"do"`

	Database string `json:"database,omitempty"` // postgres, mariadb, sqlite
	DSN      string `json:"dsn,omitempty"`      // as the programs of this database take it
	Setup    bool   `json:"setup,omitempty"`
	Process  int    `json:"process,omitempty"` // 1 and up; a process that is started again keeps its number
	Clock    int64  `json:"clock,omitempty"`   // how far the clock of this process is ahead, in milliseconds

	Name   string  `json:"name,omitempty"`
	TTL    int64   `json:"ttl,omitempty"`  // of a lock, in milliseconds
	Lock   string  `json:"lock,omitempty"` // what Acquire has answered with
	Tokens []Token `json:"tokens,omitempty"`
	Steps  []Step  `json:"steps,omitempty"` // more than one are a transaction
	Level  string  `json:"level,omitempty"` // isolation; with it also a single step is a transaction
	Serial int64   `json:"serial,omitempty"`
	User   int64   `json:"user,omitempty"`   // who edits
	Hold   int64   `json:"hold,omitempty"`   // milliseconds that a transaction waits before its commit
	Within int64   `json:"within,omitempty"` // milliseconds after which the program gives up; 0 is its own choice
}

// A Token is a fence of a name.
type Token struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

// A Step is one statement: the value is the request's ID.
type Step struct {
	Table string `json:"table"`
	Row   int64  `json:"row"`
	Form  string `json:"form,omitempty"` // the kind of statement
}

// How a request has ended.
const (
	OK      = "ok"
	Held    = "held"    // another has the lock
	Stale   = "stale"   // refused for its token; it must not have landed
	Refused = "refused" // refused for something else; it must not have landed
	Failed  = "failed"  // by the database's error; it must not have landed
	Unknown = "unknown" // it may have landed
)

// Uncounted are the rows of a write that was acknowledged without a number.
const Uncounted = -1 << 32

// An Answer is a line that a fence writes.
type Answer struct {
	ID    int64  `json:"id"`
	Is    string `json:"is"`
	Token int64  `json:"token,omitempty"` // of an acquired lock, an issue, a claim
	Lock  string `json:"lock,omitempty"`
	Rows  int64  `json:"rows,omitempty"`  // that a write has changed; less than 0 where that isn't known
	Value int64  `json:"value,omitempty"` // of a row that was read
	Mark  int64  `json:"mark,omitempty"`
	Error string `json:"error,omitempty"`
}

// A Program is a fence and how it is run.
type Program struct {
	Name    string
	Command []string
	Env     []string // besides those of the suite
	Lanes   int      // requests that a process takes at a time; 1 at least
}
