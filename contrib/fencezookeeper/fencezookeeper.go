// Package fencezookeeper fences writes under ZooKeeper's locks: the transaction that created a lock's node is a fencing
// token, and the database refuses the token of an older node.
//
//	ctx, lock, err := fencezookeeper.Lock(ctx, store, "books", conn, "/locks/books", zk.WorldACL(zk.PermAll))
//	defer lock.Unlock()
//	_, err = db.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1") // ErrStale if another has locked it since
package fencezookeeper

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// Lock takes the lock of a path, as [zk.Lock] does, and returns the lock and a context with its token: the czxid of the
// lock's node, which is higher than the czxid of each earlier holder because ZooKeeper grants the lock in the order of
// the nodes. Lock adopts the token, so a table with [sqlfence.Ledger] refuses the tokens of earlier holders from then
// on.
//
// The name is the table's name or its [sqlfence.Resource]; use each name for one path of one ensemble. A czxid has the
// ensemble's epoch in its upper 32 bits, so each election of a ZooKeeper leader makes tokens jump by about 4 * 10^9;
// tokens reach [sqlfence.MaxToken] in epoch 209,546. Lock waits even after ctx has ended, because [zk.Lock] has no
// context: close conn to end the wait.
//
// After an error the lock is released. Errors: [sqlfence.ErrStale] if the session has ended, and with it the node; the
// errors of [tokens.Store.Adopt], such as ErrStale if a later holder of the lock has adopted its token; and the errors
// of zk.
func Lock(ctx context.Context, store *tokens.Store, name string, conn *zk.Conn, path string,
	acl []zk.ACL) (context.Context, *zk.Lock, error) {
	mark := make([]byte, 16)
	rand.Read(mark) //nolint:errcheck // it never fails
	lock := zk.NewLock(conn, path, acl)
	if err := lock.LockWithData(mark); err != nil {
		return nil, nil, fmt.Errorf("fencezookeeper: lock %s: %w", path, err)
	}
	token, err := adopt(ctx, store, name, conn, path, mark)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("fencezookeeper: lock %s: %w", path, err), unlock(lock))
	}
	return sqlfence.WithFence(ctx, token), lock, nil
}

// adopt adopts the czxid of the node that has mark as its data. The mark identifies the lock's node, because zk doesn't
// report the node.
func adopt(ctx context.Context, store *tokens.Store, name string, conn *zk.Conn, path string, mark []byte) (
	sqlfence.Token, error) {
	nodes, _, err := conn.Children(path)
	if err != nil {
		return sqlfence.Token{}, err
	}
	for _, node := range nodes {
		data, stat, err := conn.Get(path + "/" + node)
		if errors.Is(err, zk.ErrNoNode) {
			continue // another's, by now
		}
		if err != nil {
			return sqlfence.Token{}, err
		}
		if bytes.Equal(data, mark) {
			token := sqlfence.Token{Name: name, Value: stat.Czxid}
			return token, store.Adopt(ctx, token)
		}
	}
	return sqlfence.Token{}, fmt.Errorf("the session has ended: %w", sqlfence.ErrStale)
}

// unlock releases a lock that may have ended with its session.
func unlock(lock *zk.Lock) error {
	if err := lock.Unlock(); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return nil
}
