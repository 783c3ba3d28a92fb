package sqlfence

import (
	"container/list"
	"context"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/session"
)

// A stmtCache is a connection's cache of prepared guarded statements: see [WithStatementCache]. Like the connection,
// it is used by one goroutine at a time. The zero value caches none.
type stmtCache struct {
	base driver.Conn
	size int
	rows bool                       // whether to cache statements that return rows
	none func(context.Context) bool // whether nothing can be prepared at present; nil for never

	direct bool // base is the connection of a known driver, which keeps no arguments after an execution

	stmts   map[string]*list.Element // by text
	recent  list.List                // list of *cachedStmt, the most recently used first
	dropped []driver.Stmt            // to be closed
}

// A cachedStmt is a cached statement of the base driver. It has one execution at a time.
type cachedStmt struct {
	text    string
	base    driver.Stmt
	inUse   bool
	dropped bool // while it was in use
}

// A cached statement may keep its SQL and its last arguments in memory. Above these limits a statement isn't cached.
const (
	maxCachedText = 16 << 10 // bytes
	maxCachedArgs = 64 << 10 // bytes, of all arguments together
)

// newStmtCache returns the cache of a connection to SQLite; for other databases the cache is empty. Without
// [WithStatementCache] a known driver's default size applies. A connection of a wrapper then has no cache, because the
// wrapper could treat prepared statements differently.
func newStmtCache(s *core.Settings, base driver.Conn) stmtCache {
	d, direct := basedriver.Known(base)
	most, rows := s.Statements(d)
	if most == 0 {
		return stmtCache{}
	}
	return stmtCache{base: base, size: most, rows: rows, direct: direct, stmts: make(map[string]*list.Element)}
}

// take returns the prepared statement of text, which it prepares if necessary, and how the cache was used. The caller
// must release the statement. Without an error, nil means that the caller must execute text unprepared.
func (c *stmtCache) take(ctx context.Context, text string) (*cachedStmt, core.CacheUse, error) {
	c.closeDropped()
	if e := c.stmts[text]; e != nil {
		k := e.Value.(*cachedStmt)
		if k.inUse {
			return nil, core.Uncached, nil
		}
		c.recent.MoveToFront(e)
		k.inUse = true
		return k, core.CacheHit, nil
	}
	if c.none != nil && c.none(ctx) {
		return nil, core.Uncached, nil
	}
	use := core.CacheMiss
	if len(c.stmts) == c.size {
		use = core.CacheEviction
		c.drop(c.recent.Back().Value.(*cachedStmt))
		c.closeDropped()
	}
	base, err := basedriver.Prepare(ctx, c.base, text)
	if err != nil {
		return nil, use, err
	}
	k := &cachedStmt{text: text, base: base, inUse: true}
	c.stmts[text] = c.recent.PushFront(k)
	return k, use, nil
}

// release ends the use of a statement.
func (c *stmtCache) release(k *cachedStmt) {
	k.inUse = false
	if k.dropped {
		k.dropped = false
		c.dropped = append(c.dropped, k.base)
	}
}

// drop removes a statement, which is closed before the next take.
func (c *stmtCache) drop(k *cachedStmt) {
	e := c.stmts[k.text]
	if e == nil || e.Value != k {
		return
	}
	delete(c.stmts, k.text)
	c.recent.Remove(e)
	if k.inUse {
		k.dropped = true
	} else {
		c.dropped = append(c.dropped, k.base)
	}
}

// expire drops all statements, and closes those that aren't in use.
func (c *stmtCache) expire() {
	for e := c.recent.Front(); e != nil; e = c.recent.Front() {
		c.drop(e.Value.(*cachedStmt))
	}
	c.closeDropped()
}

// closeDropped closes the dropped statements. A failed Close means that the connection is broken, which the next
// statement reports.
func (c *stmtCache) closeDropped() {
	for i, base := range c.dropped {
		c.dropped[i] = nil
		_ = base.Close()
	}
	c.dropped = c.dropped[:0]
}

// follow drops the cached statements before query is sent or prepared (SQLite executes some statements while preparing
// them), if query may change what they mean. The database notices changes of tables, but not that a table's name now
// means another table.
func (c *stmtCache) follow(query string) {
	if len(c.stmts) > 0 && session.Changes(query) {
		c.expire()
	}
}

// sizeOf returns the bytes in strings and byte slices of args.
func sizeOf(args []driver.NamedValue) (n int) {
	for i := range args {
		switch v := args[i].Value.(type) {
		case string:
			n += len(v)
		case []byte:
			n += len(v)
		}
	}
	return n
}
