package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/lease"
)

// A look holds the results of one round of a watch's queries.
type look struct {
	names   []watched
	waits   []database.Wait
	unshown []string // reasons why a part isn't shown
}

// A watched is a name with its newest token and its lease. It lacks the lease's end, which changes with each extension
// and would be shown as a change.
type watched struct {
	tokenRow
	Lease      string `json:"lease,omitempty"` // held or none; empty if no leases are kept
	Holder     string `json:"holder,omitempty"`
	AcquiredAt string `json:"acquired_at,omitempty"`
}

// A watcher queries the database.
type watcher struct {
	ledger *ledger
	leases *lease.Leases
	only   []string // a name, or none for all
}

// look queries the state once. It returns an error only if the tokens can't be read.
func (w *watcher) look(ctx context.Context) (look, error) {
	names, unread, err := w.ledger.watch(ctx, w.leases)
	if err != nil {
		return look{}, err
	}
	found := look{names: slices.DeleteFunc(names, func(n watched) bool { return w.isLeftOut(n.Name) })}
	if len(w.only) > 0 && len(found.names) == 0 {
		found.unshown = append(found.unshown, fmt.Sprintf("the ledger has no name %s", visible(w.only[0])))
	}
	if unread != nil {
		found.unshown = append(found.unshown, fmt.Sprintf("leases aren't shown: %v", unread))
	}
	waits, err := w.ledger.source.Waits(ctx, w.ledger.db)
	if err != nil && ctx.Err() == nil {
		found.unshown = append(found.unshown, fmt.Sprintf("waits aren't shown: %v", err))
	}
	found.waits = slices.DeleteFunc(waits,
		func(wait database.Wait) bool { return wait.Name != "" && w.isLeftOut(wait.Name) })
	return found, nil
}

func (w *watcher) isLeftOut(name string) bool { return len(w.only) > 0 && name != w.only[0] }

// watch returns the ledger's names in order. If the leases can't be read, names have none, and unread is the reason.
func (l *ledger) watch(ctx context.Context, leases *lease.Leases) (all []watched, unread, err error) {
	var names []tokenRow
	for token, err := range l.List(ctx, "") {
		if err != nil {
			return nil, nil, err
		}
		names = append(names, newTokenRow(token))
	}
	held, err := leases.List(ctx)
	if errors.Is(err, sqlfence.ErrNotSetUp) {
		return withLeases(names, nil, ""), err, nil
	}
	return withLeases(names, held, "none"), nil, err
}

// withLeases adds its lease to each name; a name without a lease gets the text none. The name's and the lease's token
// can differ, because a token may be issued without a lease, and leases are read after names; the higher one is shown.
func withLeases(names []tokenRow, held []lease.Info, none string) []watched {
	byKey := make(map[string]lease.Info, len(held))
	for _, h := range held {
		byKey[h.Key] = h
	}
	all := make([]watched, len(names))
	for i, name := range names {
		all[i] = watched{tokenRow: name, Lease: none}
		if h, ok := byKey[name.Name]; ok {
			h.Token.Value = max(h.Token.Value, name.Value)
			all[i] = watched{newTokenRow(h.Token), "held", h.Holder, moment(h.AcquiredAt)}
		}
	}
	return all
}
