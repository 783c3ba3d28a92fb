package core

import (
	"context"
	"errors"
	"log/slog"

	"github.com/sqlfence/sqlfence/internal/dialect"
)

// Options are the options of one database, before they are checked. The zero value has no options.
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

// OptionsOf applies options in their order. A nil option is invalid.
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

// Fail records an invalid option.
func (o *Options) Fail(fault error) { o.faults = append(o.faults, fault) }

// A Source supplies the tokens that a write's context lacks: see WithTokenSource. It appends the tokens to given.
type Source func(ctx context.Context, given []Token, names []string) ([]Token, error)

// A Check checks a new connection before the pool gets the connection. An error refuses it.
type Check func(ctx context.Context, s *Settings, l Link) error

// A Mode decides whether a write that the guard refuses fails, or is only reported.
type Mode uint8

// The modes. Package sqlfence documents them.
const (
	Enforce Mode = iota
	Observe
)
