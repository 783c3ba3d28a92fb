package core

import (
	"context"
	"errors"
	"log/slog"

	"github.com/sqlfence/sqlfence/internal/dialect"
)

// Options are those of one database, before they are checked. The zero value has none.
type Options struct {
	Tables     []*Table
	Dialect    dialect.Dialect // 0 for the driver's
	Schema     string
	Mode       Mode
	ModeSet    bool
	Bypass     string
	Observers  []Listener
	Logger     *slog.Logger
	Source     Source
	Untested   []string     // servers
	Statements *int         // nil for the driver's default
	OnConnect  func() Check // returns the check of one database; nil for no check

	faults []error
}

// OptionsOf applies options in their order. A nil option is a fault.
func OptionsOf[O ~func(*Options)](all []O) *Options {
	o := new(Options)
	for _, option := range all {
		if option == nil {
			o.Fail(errors.New("nil option"))
			continue
		}
		option(o)
	}
	return o
}

// Fail notes a fault of the options.
func (o *Options) Fail(fault error) { o.faults = append(o.faults, fault) }

// A Source is where writes get their tokens if their context carries none: what WithTokenSource is given. It
// appends them to given.
type Source func(ctx context.Context, given []Token, names []string) ([]Token, error)

// A Check looks at a connection before the pool gets it. An error refuses the connection.
type Check func(ctx context.Context, s *Settings, l Link) error

// A Mode decides what becomes of a write that the guard refuses.
type Mode uint8

// The modes: the public package says what they mean.
const (
	Enforce Mode = iota
	Observe
)
