package cli

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/lease"
)

func (a *app) leases() *cobra.Command {
	return group("leases", "List and release leases",
		a.leasesList(), a.leasesRelease())
}

// A leaseRow is a live lease. The lock id isn't shown: a user who knows it can release the lease.
type leaseRow struct {
	Key        string `json:"key"`
	Token      int64  `json:"token"`
	Fence      string `json:"fence"`
	Holder     string `json:"holder"`
	AcquiredAt string `json:"acquired_at"`
	ExpiresAt  string `json:"expires_at"`
	Ephemeral  bool   `json:"ephemeral"`
}

func newLeaseRow(i lease.Info) leaseRow {
	return leaseRow{i.Key, i.Token.Value, i.Token.Fence(), i.Holder, moment(i.AcquiredAt), moment(i.ExpiresAt),
		i.Ephemeral}
}

func (a *app) withLeases(f func(*lease.Leases) error) error {
	return a.withDatabase(false, func(source database.Source, db *sql.DB) error {
		leases, err := source.Leases(db, lease.WithLogger(slog.New(withoutLosses{a.log.Handler()})))
		if err != nil {
			return err
		}
		return f(leases)
	})
}

// withoutLosses drops log records about a lost lease, because the command that holds the lease reports the loss.
type withoutLosses struct{ slog.Handler }

func (h withoutLosses) Handle(ctx context.Context, record slog.Record) error {
	loss := false
	record.Attrs(func(attr slog.Attr) bool {
		err, _ := attr.Value.Any().(error)
		loss = errors.Is(err, lease.ErrLeaseLost)
		return !loss
	})
	if loss {
		return nil
	}
	return h.Handler.Handle(ctx, record)
}
