// Package nonce makes what no user's value can hold: by it sqlfence knows its own errors from
// those that a database raised for a value, which it quotes.
package nonce

import (
	"crypto/rand"
	"sync/atomic"
)

// fixed is what New returns in tests that compare texts; nil for a random one.
var fixed atomic.Pointer[string]

// New returns 80 random bits, as 16 letters and digits that mean themselves in every
// text constant. Longer ones would leave less room in MySQL's messages, which end after about
// 100 bytes in MariaDB.
func New() string {
	if f := fixed.Load(); f != nil {
		return *f
	}
	return rand.Text()[:16]
}

// Fix has New return the same text from now on, for tests that compare what is sent with texts
// that they know.
func Fix(text string) { fixed.Store(&text) }
