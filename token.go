package sqlfence

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/nfc"
)

const (
	// WarnToken is the value, a tenth of [MaxToken], from which issuing a token logs a warning.
	WarnToken = 90_000_000_000_000

	// MaxToken, the highest value of a token, has 15 decimal digits, and a float64 holds it exactly.
	MaxToken = 900_000_000_000_000
)

// A Token is a fencing token of the resource called Name. Of two tokens of one name the higher Value is the newer. The
// zero Token means "no token".
//
// Name is valid UTF-8 of 1 to 512 bytes without NUL, and not "sqlfence:floor", the ledger's row with a lower bound of
// all first tokens. Functions normalize names to Unicode's form C. Value is in 1..[MaxToken].
type Token struct {
	Name  string
	Value int64
}

// Fence returns the value as 15 digits, such as "000000000000042". The digits sort as text.
func (t Token) Fence() string { return core.Token(t).Fence() }

// String returns "name:fence", for example "books:000000000000042".
func (t Token) String() string { return core.Token(t).String() }

// MarshalText returns the form of [Token.String], or an error for an invalid token.
func (t Token) MarshalText() ([]byte, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return []byte(t.String()), nil
}

// UnmarshalText parses the form of [Token.String]. On an error t is unchanged.
func (t *Token) UnmarshalText(text []byte) error {
	parsed, err := ParseToken(string(text))
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}

// ParseToken parses the form of [Token.String]. The name may contain colons. Another form is [ErrInvalid]; for an
// invalid name or value see [Token.Validate].
func ParseToken(s string) (Token, error) {
	// The length is checked first, so that an error never quotes a megabyte of input. A text before normalisation is at
	// most three times as long as after it. Source: https://www.unicode.org/faq/normalization.html
	if len(s) <= 3*core.MaxName+1+core.FenceDigits {
		s = nfc.String(s)
	}
	if len(s) > core.MaxName+1+core.FenceDigits {
		return Token{}, fmt.Errorf("%w: token text of %d bytes is too long, at most %d", ErrInvalid, len(s),
			core.MaxName+1+core.FenceDigits)
	}
	colon := strings.LastIndexByte(s, ':')
	if colon < 0 {
		return Token{}, fmt.Errorf("%w: token %q: want name:%s", ErrInvalid, s,
			strings.Repeat("0", core.FenceDigits-1)+"1")
	}
	name, fence := s[:colon], s[colon+1:]
	if len(fence) != core.FenceDigits || strings.Trim(fence, "0123456789") != "" {
		return Token{}, fmt.Errorf("%w: token %q: the fence must be exactly %d digits", ErrInvalid, s, core.FenceDigits)
	}
	value, err := strconv.ParseInt(fence, 10, 64)
	if err != nil {
		return Token{}, fmt.Errorf("%w: token %q: %w", ErrInvalid, s, err)
	}
	t := Token{Name: name, Value: value}
	if err := t.Validate(); err != nil {
		return Token{}, err
	}
	return t, nil
}

// Validate returns nil for a valid token. A value over [MaxToken] is [ErrTokenLimit], a value below 1 or an
// invalid name [ErrInvalid].
func (t Token) Validate() error { return core.Token(t).Validate() }
