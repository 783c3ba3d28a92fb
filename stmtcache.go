package sqlfence

import (
	"container/list"
	"context"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/session"
)

// A stmtCache keeps the guarded statements that a connection has executed prepared: see
// [WithStatementCache]. Like the connection, only one goroutine at a time uses it. The zero
// value is of size 0 and keeps none.
type stmtCache struct {
	base driver.Conn
	size int
	rows bool                       // of statements that return rows, too
	none func(context.Context) bool // whether nothing can be prepared at present; nil for never

	direct bool // base is the driver's own, which keeps no arguments

	stmts   map[string]*list.Element // by text
	recent  list.List                // of *keptStmt, the most recently used first
	dropped []driver.Stmt            // to be closed
}

// A keptStmt is a statement of the base driver's. It has one execution at a time.
type keptStmt struct {
	text    string
	base    driver.Stmt
	inUse   bool
	dropped bool // while it was in use
}

// What is kept may hold on to its text and the arguments of its last execution.
const (
	maxKeptText = 16 << 10 // bytes
	maxKeptArgs = 64 << 10 // bytes, of all arguments together
)

// newStmtCache returns the cache of a connection, which only one of SQLite's has. Without the option a
// driver's default holds where its own connection is used, and not a wrapper's that could tell a prepared
// statement from another one.
func newStmtCache(s *core.Settings, base driver.Conn) stmtCache {
	d, direct := basedriver.Known(base)
	most, rows := s.Statements(d)
	if most == 0 {
		return stmtCache{}
	}
	return stmtCache{base: base, size: most, rows: rows, direct: direct, stmts: make(map[string]*list.Element)}
}

// take returns the statement for a text, prepared now unless it was, and nil if it can't be
// used at the moment. It is to be released. It also returns what that was for the cache.
func (c *stmtCache) take(ctx context.Context, text string) (*keptStmt, core.CacheUse, error) {
	c.closeDropped()
	if e := c.stmts[text]; e != nil {
		k := e.Value.(*keptStmt)
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
		c.drop(c.recent.Back().Value.(*keptStmt))
		c.closeDropped()
	}
	base, err := basedriver.Prepare(ctx, c.base, text)
	if err != nil {
		return nil, use, err
	}
	k := &keptStmt{text: text, base: base, inUse: true}
	c.stmts[text] = c.recent.PushFront(k)
	return k, use, nil
}

// release ends the use of a statement.
func (c *stmtCache) release(k *keptStmt) {
	k.inUse = false
	if k.dropped {
		k.dropped = false
		c.dropped = append(c.dropped, k.base)
	}
}

// drop forgets a statement, which is closed before the next one is used.
func (c *stmtCache) drop(k *keptStmt) {
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
		c.drop(e.Value.(*keptStmt))
	}
	c.closeDropped()
}

// closeDropped closes the statements that were dropped. If one can't be closed, the
// connection is broken, and what is sent on it next says so.
func (c *stmtCache) closeDropped() {
	for i, base := range c.dropped {
		c.dropped[i] = nil
		_ = base.Close()
	}
	c.dropped = c.dropped[:0]
}

// follow expires the statements if another one is about to be sent, or prepared, that may change
// what they mean: SQLite executes some as it prepares them. The database sees that itself where it
// changes a table; but not that a name means another table now, or that the session has forgotten
// its statements.
func (c *stmtCache) follow(query string) {
	if len(c.stmts) > 0 && session.Changes(query) {
		c.expire()
	}
}

// sizeOf returns how many bytes the arguments hold that can be long.
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
