package sqlfence

import "context"

// An Observer receives events about statements on registered tables: those that were
// refused, those that [Observe] mode let through although [Enforce] would have
// refused them, and those that [Bypass] let through. It is called on the statement's
// goroutine before the statement's call returns, so several goroutines may call
// it at once; it must be safe for that, and quick. It must not panic, nor use the
// connection or transaction that the statement was sent on. The context is the
// statement's, without its Bypass.
type Observer func(ctx context.Context, e Event)

// An Event is what an [Observer] receives.
type Event struct {
	Kind  EventKind
	Query string // as the application wrote it

	// Reason is the reason passed to [Bypass]; empty for other kinds.
	Reason string

	// Err is the error that the statement was, or would have been, refused with. Nil for
	// Bypassed and RawAccess.
	Err error
}

// An EventKind is the kind of an [Event].
type EventKind int

const (
	// Refused: the statement was refused, and changed nothing.
	Refused EventKind = iota + 1
	// WouldRefuse: [Observe] mode let a statement through that [Enforce] would have refused.
	WouldRefuse
	// Bypassed: a statement that would have been guarded or refused was sent as written under [Bypass].
	Bypassed
	// RawAccess: the base driver's connection was handed out through sql.Conn.Raw,
	// which isn't guarded. Query is empty.
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
