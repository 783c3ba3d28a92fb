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
	Dialect    dialect.Dialect // 0 means the dialect of the driver
	Schema     string
	Mode       Mode
	ModeSet    bool
	Bypass     string
	Observers  []Listener
	Logger     *slog.Logger
	Source     Source
	Untested   []string     // names of servers that the application accepts untested
	Statements *int         // prepared statements that a connection caches; nil means the driver's default
	OnConnect  func() Check // returns the check of new connections; nil if the options set no check

	errs []error
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
func (o *Options) Fail(fault error) { o.errs = append(o.errs, fault) }

// A Source supplies the tokens that a write's context lacks: see WithTokenSource. It appends the tokens to given.
type Source func(ctx context.Context, given []Token, names []string) ([]Token, error)

// A Check checks a new connection before the pool gets it. After an error the pool doesn't get the connection.
type Check func(ctx context.Context, s *Settings, l ConnAdapter) error

// A Mode decides whether a write that the guard refuses fails, or is only reported.
type Mode uint8

// The modes. Package sqlfence documents them.
const (
	Enforce Mode = iota
	Observe
)
