// Package nonce makes random texts that no user's value can contain. sqlfence recognises its own errors by a nonce. An
// error that a database throws for a value may quote the value, but never the nonce.
package nonce

import (
	"crypto/rand"
	"sync/atomic"
)

// fixed is the result of New in tests that compare texts; nil for random results.
var fixed atomic.Pointer[string]

// New returns 80 random bits, as 16 letters and digits that need no escaping in any text constant. A longer nonce would
// leave less room for the details in MySQL's messages, which end after about 100 bytes in MariaDB.
func New() string {
	if f := fixed.Load(); f != nil {
		return *f
	}
	return rand.Text()[:16]
}

// Fix makes New return text from now on, for tests that compare SQL strings.
func Fix(text string) { fixed.Store(&text) }
