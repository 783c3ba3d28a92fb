// Package dialectopt reads the options of the packages that send their own SQL, and resolves their dialect.
package dialectopt

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/sqlfence/sqlfence"
)

// Options has the common settings of all packages: the dialect, the logger, the schema, and the errors of invalid
// options. A package's configuration embeds Options. The zero value is ready.
type Options struct {
	named   sqlfence.Dialect
	unclear bool // WithDialect was given no dialect, or two
	errs    []error

	Logger *slog.Logger // the logger of WithLogger; nil without this option

	// Schema is the schema of sqlfence's tables from the options of Open; empty if the session finds the tables.
	Schema string
}

// Apply applies a package's options to its configuration.
func Apply[C interface{ Fail(error) }, O ~func(C)](config C, opts []O) {
	for _, opt := range opts {
		if opt == nil {
			config.Fail(errors.New("nil option"))
			continue
		}
		opt(config)
	}
}

// Fail records the error of an invalid option.
func (o *Options) Fail(err error) { o.errs = append(o.errs, err) }

// NameDialect records the dialect that the option WithDialect names.
func (o *Options) NameDialect(d sqlfence.Dialect) {
	switch {
	case d == 0:
		o.unclear = true
		o.Fail(errors.New("WithDialect was given the zero dialect"))
	case o.named != 0 && o.named != d:
		o.unclear = true
		o.Fail(fmt.Errorf("two dialects, %v and %v", o.named, d))
	default:
		o.named = d
	}
}

// SetLogger records the logger that the option WithLogger names.
func (o *Options) SetLogger(l *slog.Logger) {
	if l == nil {
		o.Fail(errors.New("nil logger"))
	}
	o.Logger = l
}

// Log returns the logger of WithLogger. The default is [slog.Default] at the time of the call.
func (o *Options) Log() *slog.Logger {
	if o.Logger == nil {
		return slog.Default()
	}
	return o.Logger
}

// WarnOfLimit logs a warning of package pkg if the token's value is [sqlfence.WarnToken] or more.
func (o *Options) WarnOfLimit(pkg string, token sqlfence.Token) {
	if token.Value >= sqlfence.WarnToken {
		o.Log().Warn(pkg+": fencing tokens are running out; replace the name before the limit (docs/tokens.md)",
			"name", token.Name, "token", token.Value, "limit", int64(sqlfence.MaxToken))
	}
}

// Err returns the recorded errors, with a prefix, as one error that is [sqlfence.ErrInvalid]; nil if no error was
// recorded.
func (o *Options) Err(prefix string) error {
	if len(o.errs) == 0 {
		return nil
	}
	return Invalid(prefix, errors.Join(o.errs...))
}

// Invalid returns fault, with a prefix, as an error that is [sqlfence.ErrInvalid].
func Invalid(prefix string, fault error) error { return &invalidError{prefix, fault} }

// An invalidError is ErrInvalid without the text of ErrInvalid, which would precede the prefix.
type invalidError struct {
	prefix string
	reason error
}

func (e *invalidError) Error() string        { return e.prefix + ": " + e.reason.Error() }
func (e *invalidError) Is(target error) bool { return target == sqlfence.ErrInvalid }
func (e *invalidError) Unwrap() error        { return e.reason }
