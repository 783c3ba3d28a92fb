package others

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"

	"github.com/sqlfence/sqlfence/test/proof/history"
)

func (h *holder) owner() string { return fmt.Sprintf("worker %d", h.process) }

// plainWrite writes without looking.
func plainWrite(ctx context.Context, h *holder, db doer) (int64, error) {
	return exec(ctx, db, "UPDATE fenced SET value = $1 WHERE id = $2", h.value, h.row)
}

// compared is the right guard of a row, by the token that it is given.
func compared(ctx context.Context, h *holder, token int64) (int64, error) {
	return exec(ctx, h.db, "UPDATE fenced SET value = $1, token = $2 WHERE id = $3 AND token <= $2", h.value, token, h.row)
}

const tokenColumn = "token bigint NOT NULL DEFAULT 0"

// Controls are the fences that don't hold.
var Controls = []Fence{
	{
		Name: "no guard", What: "a lease, and writes without its token",
		acquire: lockByServer, release: unlock,
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			hold()
			return plainWrite(ctx, h, h.db)
		},
	},
	{
		Name: "plain subquery", What: "the ledger is compared in the statement, and not locked", Ledger: true,
		acquire: lockByServer, release: unlock,
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			return inTx(ctx, h, func(tx *sql.Tx) (int64, error) {
				n, err := exec(ctx, tx, "UPDATE fenced SET value = $1 WHERE id = $2 AND (SELECT token FROM locks WHERE name = $3) <= $4",
					h.value, h.row, h.name, h.token)
				if err != nil || n == 0 {
					return n, err
				}
				hold()
				_, err = tx.ExecContext(ctx, history.CommitOf(h.value))
				return n, err
			})
		},
	},
	{
		Name: "client's clock", What: "leases end by the clocks of the processes, and one is ahead",
		acquire: lockByClient, release: unlock,
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			if h.now().After(h.until) {
				return 0, errStale
			}
			hold()
			return plainWrite(ctx, h, h.db)
		},
	},
	{
		Name: "check, then write", What: "the row's token is read and compared, then the row is written",
		columns: tokenColumn, acquire: lockByServer, release: unlock,
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			token, err := ask[int64](ctx, h.db, "SELECT token FROM fenced WHERE id = $1", h.row)
			if err != nil || token > h.token {
				return 0, errStale
			}
			hold()
			return exec(ctx, h.db, "UPDATE fenced SET value = $1, token = $2 WHERE id = $3", h.value, h.token, h.row)
		},
	},
	{
		Name: "EXISTS, then write", What: "the lock is looked for, then the row is written",
		acquire: lockByServer, release: unlock,
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			const query = "SELECT EXISTS (SELECT FROM locks WHERE name = $1 AND holder = $2 AND expires > clock_timestamp())"
			if held, err := ask[bool](ctx, h.db, query, h.name, h.lock); err != nil || !held {
				return 0, errStale
			}
			hold()
			return plainWrite(ctx, h, h.db)
		},
	},
	{
		Name: "state without attempt", What: "a job is completed where its state is running, of any attempt (a reduction of River's)",
		columns: "state text NOT NULL DEFAULT 'available', attempt bigint NOT NULL DEFAULT 0, attempted timestamptz NOT NULL DEFAULT '-infinity'",
		acquire: func(ctx context.Context, h *holder) (int64, bool, error) {
			const query = `UPDATE fenced SET state = 'running', attempt = attempt + 1, attempted = clock_timestamp(), value = 0
WHERE id = $1 AND (state = 'available' OR attempted < clock_timestamp() - $2 * interval '1 ms') RETURNING attempt`
			return one(h.db.QueryRowContext(ctx, query, h.row, h.ttl.Milliseconds()))
		},
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			hold()
			return exec(ctx, h.db, "UPDATE fenced SET value = $1 WHERE id = $2 AND state = 'running'", h.value, h.row)
		},
		release: func(ctx context.Context, h *holder) error {
			_, err := h.db.ExecContext(ctx, "UPDATE fenced SET state = 'available', value = 0 WHERE id = $1 AND attempt = $2", h.row, h.token)
			return err
		},
	},
	{
		Name: "SELECT of the lock, then write", What: "in a transaction that reads the lock's row and doesn't lock it (a reduction of OpenBao's)",
		acquire: lockByServer, release: unlock,
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			return inTx(ctx, h, func(tx *sql.Tx) (int64, error) {
				holder, err := ask[string](ctx, tx, "SELECT holder FROM locks WHERE name = $1", h.name)
				if err != nil || holder != h.lock {
					return 0, err
				}
				hold()
				return plainWrite(ctx, h, tx)
			})
		},
	},
	{
		Name: "random fences", What: "fences that are unique, and have no order",
		columns: tokenColumn, release: unlock,
		acquire: func(ctx context.Context, h *holder) (int64, bool, error) {
			_, ok, err := lockByServer(ctx, h)
			return 1 + rand.Int64N(1<<40), ok, err
		},
		write: comparedLate,
	},
	{
		Name: "epoch 0", What: "an epoch that is 0, as of a process that has forgotten it, isn't compared",
		columns: tokenColumn, release: unlock,
		acquire: func(ctx context.Context, h *holder) (int64, bool, error) {
			token, ok, err := lockByServer(ctx, h)
			h.extra = token
			return token, ok, err
		},
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			hold()
			return exec(ctx, h.db, "UPDATE fenced SET value = $1, token = greatest(token, $2) WHERE id = $3 AND ($2 = 0 OR token <= $2)",
				h.value, h.extra, h.row)
		},
	},
	{
		Name: "owner's name alone", What: "the lock's owner is compared, in the statement and with a lock, and has the same name again",
		acquire: lockByOwner, release: unlock,
		write: func(ctx context.Context, h *holder, hold func()) (int64, error) {
			hold()
			return exec(ctx, h.db, `WITH held AS (SELECT FROM locks WHERE name = $3 AND holder = $4 AND expires > clock_timestamp() FOR SHARE)
UPDATE fenced SET value = $1 WHERE id = $2 AND EXISTS (SELECT FROM held)`, h.value, h.row, h.name, h.owner())
		},
	},
}
