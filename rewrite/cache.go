package rewrite

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

const (
	maxCached  = 64 << 10 // the longest statement to cache, in bytes
	cacheBytes = 4 << 20  // what the plans of one kind take
	maxShare   = 4        // one plan takes at most this part of that
)

const slotBytes = 128 // what a slot takes, in bytes, with its place in the map

// cache keeps plans by query text, bounded by the plans' bytes. No library is used, because the root module has few
// requirements, and because a hit may only cost a lookup under a shared lock. So the cache evicts by second chance
// (clock): a list in order of use would be written at every read. A query is hashed once for all operations. Of two
// queries with the same hash, the later query isn't cached.
type cache struct {
	seed  maphash.Seed
	mu    sync.RWMutex
	slots map[uint64]*slot
	hand  *slot // the next to be dropped, of a ring; nil if there is none
	bytes int
	max   int
}

type slot struct {
	query        string
	hash         uint64
	plan         *Plan
	bytes        int
	before, next *slot       // in the ring
	used         atomic.Bool // since the hand passed last
}

func newCache(bytes int) *cache {
	return &cache{seed: maphash.MakeSeed(), slots: make(map[uint64]*slot), max: bytes}
}

// hash returns the hash of query, for get and put.
func (c *cache) hash(query string) uint64 { return maphash.String(c.seed, query) }

// get returns the plan of query, or nil.
func (c *cache) get(query string, hash uint64) *Plan {
	c.mu.RLock()
	s := c.slots[hash]
	c.mu.RUnlock()
	if s == nil || s.query != query {
		return nil
	}
	if !s.used.Load() {
		s.used.Store(true)
	}
	return s.plan
}

// put caches the plan of query. If two callers race, the first plan stays. A plan that would displace too many other
// plans isn't cached.
func (c *cache) put(query string, hash uint64, p *Plan) {
	s := &slot{query: query, hash: hash, plan: p, bytes: slotBytes + len(query) + p.Size()}
	if s.bytes > c.max/maxShare {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slots[hash] != nil {
		return
	}
	for c.bytes+s.bytes > c.max {
		c.drop()
	}
	c.slots[hash] = s
	c.bytes += s.bytes
	c.insert(s)
}

// drop drops the first plan from the hand on that was not used since the hand passed.
func (c *cache) drop() {
	for c.hand.used.Swap(false) {
		c.hand = c.hand.next
	}
	s := c.hand
	delete(c.slots, s.hash)
	c.bytes -= s.bytes
	s.before.next, s.next.before = s.next, s.before
	if c.hand = s.next; c.hand == s {
		c.hand = nil
	}
}

// insert puts a slot into the ring, where the hand comes last.
func (c *cache) insert(s *slot) {
	if c.hand == nil {
		s.before, s.next, c.hand = s, s, s
		return
	}
	s.before, s.next = c.hand.before, c.hand
	s.before.next, s.next.before = s, s
}
