package others

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Careless are fences that a check finds, and that a storm has no question for.
var Careless = []Fence{
	{
		Name: "no lock", What: "each that asks gets the next token", columns: tokenColumn, release: unlock, write: comparedLate,
		acquire: func(ctx context.Context, h *holder) (int64, bool, error) {
			return one(h.db.QueryRowContext(ctx, "UPDATE locks SET holder = $1, token = token + 1 WHERE name = $2 RETURNING token", h.lock, h.name))
		},
	},
	{
		Name: "no end", What: "a lock lasts until its holder releases it", columns: tokenColumn, release: unlock, write: comparedLate,
		acquire: func(ctx context.Context, h *holder) (int64, bool, error) {
			const query = "UPDATE locks SET holder = $1, token = token + 1, expires = 'infinity' WHERE name = $2 AND expires = '-infinity' RETURNING token"
			return one(h.db.QueryRowContext(ctx, query, h.lock, h.name))
		},
	},
	{
		Name: "a counter in the process", What: "each process counts the tokens for itself", columns: tokenColumn, release: unlock, write: comparedLate,
		acquire: func(ctx context.Context, h *holder) (int64, bool, error) {
			_, ok, err := lockByServer(ctx, h)
			return counter.Add(1), ok, err
		},
	},
	{
		Name: "read only", What: "no write gets through", acquire: lockByServer, release: unlock,
		write: func(context.Context, *holder, func()) (int64, error) { return 0, nil },
	},
	{
		Name: "write, then look", What: "the row is written, and then the lock is looked at", acquire: lockByServer, release: unlock,
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			hold()
			if _, err := plainWrite(ctx, h, h.db); err != nil {
				return 0, err
			}
			holder, err := ask[string](ctx, h.db, "SELECT holder FROM locks WHERE name = $1", h.name)
			if err != nil || holder != h.lock {
				return 0, errStale
			}
			return 1, nil
		},
	},
	{
		Name: "given up", What: "a write that takes long is given up, and said to be refused", columns: tokenColumn,
		acquire: lockByServer, release: unlock,
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			hold()
			written := make(chan int64, 1)
			go func() {
				rows, _ := compared(context.WithoutCancel(ctx), h, h.token)
				written <- rows
			}()
			select {
			case rows := <-written:
				return rows, nil
			case <-time.After(200 * time.Millisecond):
				return 0, errStale
			}
		},
	},
	{
		Name: "look, then lock", What: "the lock is looked at, then taken", columns: tokenColumn, release: unlock, write: comparedLate,
		acquire: func(ctx context.Context, h *holder) (int64, bool, error) {
			const query = "SELECT expires < clock_timestamp() FROM locks WHERE name = $1"
			if free, err := ask[bool](ctx, h.db, query, h.name); err != nil || !free {
				return 0, false, err
			}
			time.Sleep(h.pause)
			return one(h.db.QueryRowContext(ctx, `UPDATE locks SET holder = $1, token = token + 1,
expires = clock_timestamp() + $2 * interval '1 ms' WHERE name = $3 RETURNING token`, h.lock, h.ttl.Milliseconds(), h.name))
		},
	},
	{
		Name: "whole seconds", What: "locks last for whole seconds, rounded down", columns: tokenColumn, release: unlock, write: comparedLate,
		acquire: func(ctx context.Context, h *holder) (int64, bool, error) {
			h.ttl = h.ttl.Truncate(time.Second)
			return lockByServer(ctx, h)
		},
	},
	{
		Name: "release of all", What: "a process gives all of its locks back at once", columns: tokenColumn, acquire: lockByServer, write: comparedLate,
		release: func(ctx context.Context, h *holder) error {
			_, err := h.db.ExecContext(ctx, "UPDATE locks SET expires = '-infinity' WHERE holder LIKE split_part($1, '-', 1) || '-%' "+
				"AND EXISTS (SELECT FROM locks WHERE name = $2 AND holder = $1)", h.lock, h.name)
			return err
		},
	},
	{
		Name: "mark until the release", What: "a release takes the row's mark away", columns: tokenColumn, acquire: lockByServer, write: comparedLate,
		release: func(ctx context.Context, h *holder) error {
			_, err := h.db.ExecContext(ctx, "UPDATE fenced SET token = 0 WHERE id = $1 AND token = $2", h.row, h.token)
			return errors.Join(unlock(ctx, h), err)
		},
	},
	{
		Name: "another's lock", What: "a write is refused while another has the lock", acquire: lockByServer, release: unlock,
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			hold()
			return exec(ctx, h.db, `WITH lock AS (SELECT FROM locks WHERE name = $3 AND holder <> $4 AND expires > clock_timestamp() FOR SHARE)
UPDATE fenced SET value = $1 WHERE id = $2 AND NOT EXISTS (SELECT FROM lock)`, h.value, h.row, h.name, h.lock)
		},
	},
	{
		Name: "own clock", What: "the process looks at its own clock, and at once sends the write", acquire: lockByServer, release: unlock,
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			hold()
			if h.now().After(h.until) {
				return 0, errStale
			}
			return plainWrite(ctx, h, h.db)
		},
	},
	{
		Name: "tokens as text", What: "the row's token is compared as a text", columns: "token text NOT NULL DEFAULT '' COLLATE \"C\"",
		acquire: lockByServer, release: unlock,
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			hold()
			return exec(ctx, h.db, "UPDATE fenced SET value = $1, token = $2 WHERE id = $3 AND token <= $2", h.value, fmt.Sprint(h.token), h.row)
		},
	},
	{
		Name: "first mark", What: "marks are kept in a table of their own, and the first one stays", acquire: lockByServer, release: unlock,
		setup: []string{"CREATE TABLE marks (id bigint PRIMARY KEY, token bigint NOT NULL)"},
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			hold()
			return exec(ctx, h.db, `WITH mark AS (INSERT INTO marks VALUES ($2, $3) ON CONFLICT DO NOTHING)
UPDATE fenced SET value = $1 WHERE id = $2 AND NOT EXISTS (SELECT FROM marks WHERE id = $2 AND token > $3)`, h.value, h.row, h.token)
		},
	},
	{
		Name: "the former one shut out", What: "the holder before is shut out, and not those before it", acquire: lockByServer, release: unlock,
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			hold()
			return exec(ctx, h.db, `WITH lock AS (SELECT FROM locks WHERE name = $3 AND token = $4 + 1 FOR SHARE)
UPDATE fenced SET value = $1 WHERE id = $2 AND NOT EXISTS (SELECT FROM lock)`, h.value, h.row, h.name, h.token)
		},
	},
}

var counter atomic.Int64
