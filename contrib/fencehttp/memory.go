package fencehttp

import (
	"sync"
	"time"
)

// A memory knows the nonces that were used, each until its value has ended by itself. It is safe for concurrent use.
type memory struct {
	now func() time.Time

	mu    sync.Mutex
	until map[string]time.Time
	sweep time.Time // when those that have ended are forgotten
}

func newMemory(now func() time.Time) *memory {
	return &memory{now: now, until: make(map[string]time.Time)}
}

// fresh notes a nonce, and reports whether it is new.
func (m *memory) fresh(nonce string, until time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.now(); now.After(m.sweep) {
		for n, end := range m.until {
			if now.After(end) {
				delete(m.until, n)
			}
		}
		m.sweep = now.Add(time.Second)
	}
	if _, used := m.until[nonce]; used {
		return false, nil
	}
	m.until[nonce] = until
	return true, nil
}
