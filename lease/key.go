package lease

import (
	"crypto/rand"
	"encoding/base64"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/nfc"
)

// NormalizeKey returns key in Unicode normalization form C, as it is stored. It returns [ErrInvalid] if key is empty,
// longer than 512 bytes, not valid UTF-8, contains a NUL, or is "sqlfence:floor", which sqlfence uses in the ledger.
func NormalizeKey(key string) (string, error) {
	key = nfc.String(key)
	if fault := core.NameDefect(key); fault != "" {
		return "", invalid("the key names its tokens: %s", fault)
	}
	return key, nil
}

// newLockID returns a random lock id, before the request is sent, so that an attempt without an answer can be undone.
func newLockID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// validateLockID returns [ErrInvalid] unless id is 16 bytes in unpadded base64url.
func validateLockID(id string) error {
	const size = 22
	if len(id) != size {
		return invalid("a lock id of %d characters, want %d", len(id), size)
	}
	for _, c := range []byte(id) {
		switch {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return invalid("a lock id with the byte %#x, want base64url", c)
		}
	}
	return nil
}
