package lease

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/nfc"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// maxKey is the maximum length of a normalized key in bytes: that of a token's name,
// because the key is the name of its tokens.
const maxKey = 512

// NormalizeKey returns key in Unicode normalization form C, the stored form and the name of the tokens. It returns
// [ErrInvalid] if key is empty, longer than 512 bytes, not valid UTF-8, contains a NUL, or is "sqlfence:floor".
func NormalizeKey(key string) (string, error) {
	if !utf8.ValidString(key) {
		return "", invalid("a key of %d bytes is not valid UTF-8", len(key))
	}
	key = nfc.String(key)
	switch {
	case key == "":
		return "", invalid("the key is empty")
	case len(key) > maxKey:
		return "", invalid("a key of %d bytes, at most %d are allowed", len(key), maxKey)
	case strings.IndexByte(key, 0) >= 0:
		return "", invalid("the key %q holds a NUL byte", key)
	case key == sqltext.FloorName:
		return "", invalid("the key %q is reserved for a row of the ledger; use another key", key)
	}
	return key, nil
}

// lockIDBytes is the size of a lock id before it is encoded.
const lockIDBytes = 16

// newLockID returns a lock id that can't be guessed. It is made before the request is sent, so that
// an attempt can be undone after its answer is lost.
func newLockID() string {
	var id [lockIDBytes]byte
	rand.Read(id[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// validateLockID checks that id has the form of a lock id: 16 bytes in unpadded
// base64url, that is 22 characters of A-Z, a-z, 0-9, - and _. The error is [ErrInvalid].
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
