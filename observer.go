package sqlfence

import "context"

// An Observer is told what became of statements that concern registered
// tables: what was refused, what [Observe] mode let through that [Enforce]
// would have refused, and what [Bypass] let through. It is called before the
// statement's own call returns, from the goroutine that made it, on several
// goroutines at once; it must be safe for that, and quick. It must not panic, nor
// use the connection or transaction that the statement was sent on. The context is
// the statement's, without its Bypass.
type Observer func(ctx context.Context, e Event)

// An Event is one thing an [Observer] is told.
type Event struct {
	Kind  EventKind
	Query string // as the application wrote it

	// Reason is the one given to [Bypass]; empty for other kinds.
	Reason string

	// Err is why the statement was, or would have been, refused; errors.Is and
	// errors.As tell more. Nil for Bypassed and RawAccess.
	Err error
}

// EventKind says what an [Event] is about.
type EventKind int

const (
	// Refused: the statement was refused, and changed nothing.
	Refused EventKind = iota + 1
	// WouldRefuse: [Observe] mode let a statement through that [Enforce] would have refused.
	WouldRefuse
	// Bypassed: a statement that [Enforce] guards or refuses passed as written under [Bypass].
	Bypassed
	// RawAccess: the base driver's connection was handed out through sql.Conn.Raw,
	// a way around the fence. Query is empty.
	RawAccess
)

// String returns the name of the kind, in lower case.
func (k EventKind) String() string {
	switch k {
	case Refused:
		return "refused"
	case WouldRefuse:
		return "would refuse"
	case Bypassed:
		return "bypassed"
	case RawAccess:
		return "raw access"
	}
	return "unknown"
}
