package fencehttp

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/sqlfence/sqlfence"
)

// Unsigned returns a [Proof] without a signature: the tokens as [sqlfence.Token.String] writes them, percent-encoded,
// with blanks between them. The risk: any client that reaches the server can write any number. On a table with
// [sqlfence.RowFence] alone, a forged high token passes, and then makes each honest holder's token stale. With
// [sqlfence.Ledger] a token that was never issued is refused, but a client can guess the newest token. Use Unsigned
// only if each client is trusted, for example between processes of one host.
func Unsigned() Proof { return unsigned{} }

type unsigned struct{}

func (unsigned) Seal(_ string, tokens ...sqlfence.Token) (string, error) {
	text, err := join(tokens)
	if err == nil && len(text) > maxHeader {
		err = fmt.Errorf("fencehttp: %d tokens take %d bytes, more than %d: %w", len(tokens), len(text), maxHeader,
			sqlfence.ErrInvalid)
	}
	return text, err
}

func (unsigned) Open(_, value string) ([]sqlfence.Token, error) {
	if len(value) > maxHeader {
		return nil, refused("they are too long")
	}
	return split(value)
}

// join writes tokens as printable ASCII, with blanks between them.
func join(tokens []sqlfence.Token) (string, error) {
	texts := make([]string, len(tokens))
	for i, t := range tokens {
		text, err := t.MarshalText()
		if err != nil {
			return "", fmt.Errorf("fencehttp: %w", err)
		}
		texts[i] = url.PathEscape(string(text))
	}
	return strings.Join(texts, " "), nil
}

// split parses only the exact output of join, so that each list of tokens has one form.
func split(text string) ([]sqlfence.Token, error) {
	var tokens []sqlfence.Token
	for part := range strings.SplitSeq(text, " ") {
		plain, err := url.PathUnescape(part)
		if err != nil || url.PathEscape(plain) != part {
			return nil, refused("a token is escaped in another way")
		}
		token, err := sqlfence.ParseToken(plain)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRefused, err)
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}
