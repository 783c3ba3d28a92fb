package core

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/nfc"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

const (
	// WarnToken is the value from which a token is worth a warning.
	WarnToken = 90_000_000_000_000

	// MaxToken is the highest value of a token.
	MaxToken = 900_000_000_000_000

	// MaxName is the length limit of a token's name, in bytes.
	MaxName = 512

	// FenceDigits is how many digits the text of a token's value has.
	FenceDigits = 15
)

// A Token is the public package's Token.
type Token struct {
	Name  string
	Value int64
}

// Fence returns the value as [FenceDigits] digits.
func (t Token) Fence() string { return fmt.Sprintf("%0*d", FenceDigits, t.Value) }

// String returns "name:fence".
func (t Token) String() string { return t.Name + ":" + t.Fence() }

// Validate returns nil for a token that can be used. A value over [MaxToken] is
// [ErrTokenLimit]; a value below 1 or an invalid name is [ErrInvalid].
func (t Token) Validate() error {
	if err := ValidateName(t.Name); err != nil {
		return err
	}
	switch {
	case t.Value < 1:
		return fmt.Errorf("%w: token %q has the value %d, the lowest is 1", ErrInvalid, t.Name, t.Value)
	case t.Value > MaxToken:
		return fmt.Errorf("%w: token %q has the value %d, the highest is %d", ErrTokenLimit, t.Name, t.Value,
			int64(MaxToken))
	}
	return nil
}

// ValidateName returns nil for a name that a token can carry, once it is in Unicode's normalization form C, else an
// error that wraps [ErrInvalid].
func ValidateName(name string) error {
	if fault := NameDefect(nfc.String(name)); fault != "" {
		return fmt.Errorf("%w: %s", ErrInvalid, fault)
	}
	return nil
}

// NameDefect returns why a name in normalization form C is no valid token name; empty for a valid name.
func NameDefect(name string) string {
	switch {
	case name == "":
		return "a token's name is empty"
	case len(name) > MaxName:
		return fmt.Sprintf("a token's name has %d bytes, at most %d are allowed", len(name), MaxName)
	case strings.IndexByte(name, 0) >= 0:
		return fmt.Sprintf("token name %q contains a NUL byte", name)
	case name == sqltext.LowerBoundName:
		return fmt.Sprintf("the token name %q is that of the ledger's floor", name)
	case !utf8.ValidString(name):
		return fmt.Sprintf("token name %q is not valid UTF-8", name)
	}
	return ""
}
