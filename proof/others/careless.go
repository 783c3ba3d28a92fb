package others

import (
	"context"
	"sync/atomic"
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
}

var counter atomic.Int64
