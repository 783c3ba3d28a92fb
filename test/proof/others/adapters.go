package others

import (
	"context"
	"database/sql"
	"time"

	"github.com/sqlfence/sqlfence/test/proof/history"
)

// Adapters are fences as people write them by hand.
var Adapters = []Fence{
	{
		Name: "ledger, locked", Sound: true, What: "the ledger is compared in the statement, and locked FOR SHARE until the commit", Ledger: true,
		acquire: lockByServer, release: unlock,
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			return inTx(ctx, h, func(tx *sql.Tx) (int64, error) {
				token, err := ask[int64](ctx, tx, "SELECT token FROM locks WHERE name = $1 FOR SHARE", h.name)
				if err != nil || token != h.token {
					return 0, err
				}
				hold()
				n, err := plainWrite(ctx, h, tx)
				if err == nil {
					_, err = tx.ExecContext(ctx, history.CommitOf(h.value))
				}
				return n, err
			})
		},
	},
	{
		Name: "row, compared", Sound: true, What: "a row takes a fence that isn't lower than its own, compared in the statement",
		columns: tokenColumn, acquire: lockByServer, release: unlock, write: comparedLate,
	},
	{
		Name: "SyncGuard's way", Sound: true, What: "a counter by a key, and a row takes only higher fences: a holder writes a row once",
		columns: tokenColumn, release: unlock,
		setup: []string{"CREATE TABLE counters (key text PRIMARY KEY, fence bigint NOT NULL)"},
		acquire: func(ctx context.Context, h *holder) (int64, bool, error) {
			if _, ok, err := lockByServer(ctx, h); err != nil || !ok {
				return 0, false, err
			}
			const query = "INSERT INTO counters VALUES ($1, 1) ON CONFLICT (key) DO UPDATE SET fence = counters.fence + 1 RETURNING fence"
			return one(h.db.QueryRowContext(ctx, query, h.name))
		},
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			hold()
			return exec(ctx, h.db, "UPDATE fenced SET value = $1, token = $2 WHERE id = $3 AND token < $2", h.value, h.token, h.row)
		},
	},
	{
		Name: "version column", What: "the row's version is read with the lock, and compared and raised by each write",
		columns: "version bigint NOT NULL DEFAULT 0", release: unlock,
		acquire: func(ctx context.Context, h *holder) (token int64, ok bool, err error) {
			if token, ok, err = lockByServer(ctx, h); err == nil && ok {
				time.Sleep(h.pause)
				h.extra, err = ask[int64](ctx, h.db, "SELECT version FROM fenced WHERE id = $1", h.row)
			}
			return token, ok && err == nil, err
		},
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			hold()
			n, err := exec(ctx, h.db, "UPDATE fenced SET value = $1, version = version + 1 WHERE id = $2 AND version = $3", h.value, h.row, h.extra)
			if known, ok := h.held.Load(h.lock); ok && n == 1 {
				next := *known.(*holder)
				next.extra++
				h.held.Store(h.lock, &next)
			}
			return n, err
		},
	},
	{
		Name: "version column, read again", What: "the same, and a writer that meets a conflict reads the version again and writes",
		columns: "version bigint NOT NULL DEFAULT 0", acquire: lockByServer, release: unlock,
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			hold()
			version, err := ask[int64](ctx, h.db, "SELECT version FROM fenced WHERE id = $1", h.row)
			if err != nil {
				return 0, errStale
			}
			return exec(ctx, h.db, "UPDATE fenced SET value = $1, version = version + 1 WHERE id = $2 AND version = $3", h.value, h.row, version)
		},
	},
	{
		Name: "Redis lock and INCR", Sound: true, What: "SET NX PX, a fence by INCR, and the row compared in the statement",
		Needs: needsRedis, columns: tokenColumn, acquire: redisLock, release: redisUnlock, write: comparedLate,
	},
	{
		Name: "Redis lock and INCR, restarted", What: "the same, where Redis is restarted without persistence",
		Needs: needsRedis, Forgets: forgetRedis, columns: tokenColumn, acquire: redisLock, release: redisUnlock, write: comparedLate,
	},
	{
		Name: "etcd mutex and revision", Sound: true, What: "a key with a lease, its revision as the fence, and the row compared in the statement",
		Needs: needsEtcd, columns: tokenColumn, acquire: etcdLock, release: etcdUnlock, write: comparedLate,
	},
}

// comparedLate compares after a pause.
func comparedLate(ctx context.Context, h *holder, hold func()) (int64, error) {
	hold()
	return compared(ctx, h, h.token)
}
