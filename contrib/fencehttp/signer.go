package fencehttp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence"
)

// ErrRefused: the tokens of a request are rejected: unsigned, signed with a different secret or for a different
// request, too old, used before, or malformed. The error's text has the reason.
var ErrRefused = errors.New("fencehttp: tokens refused")

const (
	// MinSecret is the least number of bytes in a secret of [NewSigner].
	MinSecret = 32

	// DefaultLifetime is how long the signature of a [Signer] is valid.
	DefaultLifetime = 30 * time.Second

	version    = "1"
	maxHeader  = 8 << 10 // bytes
	nonceBytes = 16
)

// A Proof turns tokens into a header's value, and a header's value back into tokens. [Signer] and the result of
// [Unsigned] implement Proof. A target identifies the request that carries the tokens: client and server must compute
// equal targets.
type Proof interface {
	// Seal returns the header's value for tokens. A token that isn't valid is [sqlfence.ErrInvalid].
	Seal(target string, tokens ...sqlfence.Token) (string, error)

	// Open returns the tokens of a value. For a rejected value the error is [ErrRefused].
	Open(target, value string) ([]sqlfence.Token, error)
}

// A Signer is a [Proof] by HMAC-SHA-256, for one target and a short time. A Signer opens each value only once. If
// several processes serve one target, each process accepts a value once, unless [Once] shares the used values between
// the processes. A Signer is safe for concurrent use.
type Signer struct {
	secrets  [][]byte
	lifetime time.Duration
	once     func(nonce string, until time.Time) (bool, error)
	now      func() time.Time

	mu    sync.Mutex
	used  map[string]time.Time // the used nonces, each until its value expires
	sweep time.Time            // when expired signatures are removed next
}

// A SignerOption changes a [Signer].
type SignerOption func(*Signer)

// Lifetime sets how long a signed value is valid: from a millisecond to 24 hours, [DefaultLifetime] by default. It must
// cover the time from signing to checking and the difference of the two clocks. The client's Signer writes the end of
// the value's validity, by its own clock and lifetime, into the value. Because the client's clock may be ahead, a
// server accepts an end that is up to twice the server's lifetime away, and rejects a later end.
func Lifetime(d time.Duration) SignerOption { return func(s *Signer) { s.lifetime = d } }

// Once lets several servers with one target reject a value that one of them has accepted before. f stores a value's
// nonce, a text of 22 characters, until the given time, for example in a database, and reports whether the nonce is
// new. If f returns an error, the request is refused without its text. Values with a wrong signature don't reach f.
func Once(f func(nonce string, until time.Time) (fresh bool, err error)) SignerOption {
	return func(s *Signer) { s.once = f }
}

// NewSigner returns a Signer that signs with the first secret and accepts signatures of any of the secrets. To change a
// secret without downtime, append the new secret in all processes, then move the new secret to the front, then remove
// the old secret. Errors: [sqlfence.ErrInvalid] for no secret, one of less than [MinSecret] bytes, or a lifetime out of
// range.
func NewSigner(secrets [][]byte, options ...SignerOption) (*Signer, error) {
	s := &Signer{lifetime: DefaultLifetime, now: time.Now, used: make(map[string]time.Time)}
	for _, o := range options {
		o(s)
	}
	if s.once == nil {
		s.once = s.fresh
	}
	if s.lifetime < time.Millisecond || s.lifetime > 24*time.Hour {
		return nil, fmt.Errorf("fencehttp: a lifetime of %v: %w", s.lifetime, sqlfence.ErrInvalid)
	}
	for _, secret := range secrets {
		if len(secret) < MinSecret {
			return nil, fmt.Errorf("fencehttp: a secret of %d bytes, less than %d: %w", len(secret), MinSecret,
				sqlfence.ErrInvalid)
		}
		s.secrets = append(s.secrets, append([]byte(nil), secret...))
	}
	if len(s.secrets) == 0 {
		return nil, fmt.Errorf("fencehttp: no secret: %w", sqlfence.ErrInvalid)
	}
	return s, nil
}

var _ Proof = (*Signer)(nil)

// Seal implements [Proof]. The value is "1." and three parts in base64url: a nonce with the time when the value ends,
// the tokens, and the signature of both and of the target.
func (s *Signer) Seal(target string, tokens ...sqlfence.Token) (string, error) {
	text, err := join(tokens)
	if err != nil {
		return "", err
	}
	head := make([]byte, nonceBytes+8)
	rand.Read(head[:nonceBytes]) //nolint:errcheck // it never fails
	binary.BigEndian.PutUint64(head[nonceBytes:], uint64(s.now().Add(s.lifetime).UnixMilli()))
	mac := sign(s.secrets[0], target, head, text)
	value := strings.Join([]string{version, encode(head), encode([]byte(text)), encode(mac)}, ".")
	if len(value) > maxHeader {
		return "", fmt.Errorf("fencehttp: %d tokens take %d bytes, more than %d: %w", len(tokens), len(value), maxHeader,
			sqlfence.ErrInvalid)
	}
	return value, nil
}

// Open implements [Proof].
func (s *Signer) Open(target, value string) ([]sqlfence.Token, error) {
	parts := strings.Split(value, ".")
	if len(value) > maxHeader || len(parts) != 4 || parts[0] != version {
		return nil, refused("they are not signed")
	}
	var fields [3][]byte
	for i, part := range parts[1:] {
		decoded, err := encoding.DecodeString(part)
		if err != nil {
			return nil, refused("they are not signed")
		}
		fields[i] = decoded
	}
	head, text, mac := fields[0], string(fields[1]), fields[2]
	if len(head) != nonceBytes+8 || !s.signed(target, head, text, mac) {
		return nil, refused("the signature is of another secret, or for another request")
	}
	now, until := s.now(), time.UnixMilli(int64(binary.BigEndian.Uint64(head[nonceBytes:])))
	if left := until.Sub(now); left <= 0 || left > 2*s.lifetime {
		return nil, refused(fmt.Sprintf("they were signed for another time (the clocks differ, or the request was "+
			"under way for more than %v)", s.lifetime))
	}
	fresh, err := s.once(encode(head[:nonceBytes]), until)
	if err != nil {
		return nil, &unknownUse{err}
	}
	if !fresh {
		return nil, refused("they were used before (sign each request, also one that is sent again)")
	}
	return split(text)
}

func (s *Signer) fresh(nonce string, until time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); now.After(s.sweep) {
		maps.DeleteFunc(s.used, func(_ string, end time.Time) bool { return now.After(end) })
		s.sweep = now.Add(time.Second)
	}
	if _, used := s.used[nonce]; used {
		return false, nil
	}
	s.used[nonce] = until
	return true, nil
}

// An unknownUse is a refusal because [Once] has failed. Its text omits the cause, because the text goes to the client.
type unknownUse struct{ cause error }

func (e *unknownUse) Error() string {
	return ErrRefused.Error() + ": the server can't tell whether they were used before"
}

func (e *unknownUse) Unwrap() []error { return []error{ErrRefused, e.cause} }

// signed compares with all secrets, in the same time.
func (s *Signer) signed(target string, head []byte, text string, mac []byte) bool {
	found := false
	for _, secret := range s.secrets {
		found = hmac.Equal(mac, sign(secret, target, head, text)) || found
	}
	return found
}

// sign returns the signature. Each part but the last has its length in front, so that two different requests never have
// equal texts.
func sign(secret []byte, target string, head []byte, text string) []byte {
	h := hmac.New(sha256.New, secret)
	fmt.Fprintf(h, "sqlfence-%s\n%d\n%s%d\n%s%s", version, len(target), target, len(head), head, text)
	return h.Sum(nil)
}

var encoding = base64.RawURLEncoding.Strict()

func encode(b []byte) string { return encoding.EncodeToString(b) }

func refused(why string) error { return fmt.Errorf("%w: %s", ErrRefused, why) }
