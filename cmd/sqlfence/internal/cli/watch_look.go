package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/database"
	"github.com/sqlfence/sqlfence/cmd/sqlfence/internal/metrics"
	"github.com/sqlfence/sqlfence/lease"
)

// A look holds the results of one round of a watch's queries.
type look struct {
	names   []watched
	waits   []database.Wait
	counts  map[counted]int64
	unshown []string // reasons why a part isn't shown
}

// A watched name has its newest token and its lease, without the lease's fields that change while it is held.
type watched struct {
	tokenRow
	Lease      string `json:"lease,omitempty"` // held or none; empty if no leases are kept
	Holder     string `json:"holder,omitempty"`
	AcquiredAt string `json:"acquired_at,omitempty"`
}

// A counted is something that programs count.
type counted struct {
	What      string `json:"what"` // refused, would refuse; contended, lost
	Table     string `json:"table,omitempty"`
	Statement string `json:"statement,omitempty"` // the statement's verb
	Error     string `json:"error,omitempty"`     // the kind of the error, such as stale
	Resource  string `json:"resource,omitempty"`  // the resource of a lease
	Program   string `json:"program"`             // host and port, or as Prometheus calls it
}

// A watcher queries the database and the programs.
type watcher struct {
	ledger  *ledger
	leases  *lease.Leases
	only    []string // a name, or none for all
	metrics []string // addresses
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
	found.counts = make(map[counted]int64)
	for _, address := range w.metrics {
		if err := count(ctx, address, found.counts); err != nil && ctx.Err() == nil {
			found.unshown = append(found.unshown, fmt.Sprintf("metrics aren't shown: %v", err))
		}
	}
	return found, nil
}

func (w *watcher) isLeftOut(name string) bool { return len(w.only) > 0 && name != w.only[0] }

// watch returns the names in order. unread is the reason if the leases are missing because the role can't read leases.
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

// withLeases adds to each name its lease, or none for a name without a lease. A lease has an older token than its name
// if a later one was issued without a lease, and a newer one if it was read later.
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

// patience is how long a program may take to answer.
const patience = 5 * time.Second

// count adds the counts of the program at an address. The metrics have the names of OpenTelemetry's exporter.
func count(ctx context.Context, address string, to map[counted]int64) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	samples, err := metrics.Read(ctx, &http.Client{Timeout: patience}, address, "sqlfence_")
	if err != nil {
		return err
	}
	for _, s := range samples {
		of := s.Labels
		c := counted{Program: cmp.Or(of["instance"], u.Host)}
		switch s.Name {
		case "sqlfence_writes_total":
			c.What = of["sqlfence_outcome"]
			c.Table, c.Statement, c.Error = of["db_collection_name"], of["db_operation_name"], of["error_type"]
		case "sqlfence_lease_events_total":
			c.What, c.Resource = of["sqlfence_lease_event"], of["sqlfence_resource"]
		}
		if slices.Contains([]string{"refused", "would refuse", "contended", "lost"}, c.What) {
			to[c] += int64(s.Value)
		}
	}
	return nil
}

// String describes the counted event, as text to follow the count.
func (c counted) String() string {
	if c.Resource != "" {
		return fmt.Sprintf("%s: the lease of %s", c.What, c.Resource)
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s", c.What, c.Statement, c.Table)) + " (" + c.Error + ")"
}

func inOrder(counts map[counted]int64) []counted {
	return slices.SortedFunc(maps.Keys(counts), func(x, y counted) int {
		return strings.Compare(x.String()+x.Program, y.String()+y.Program)
	})
}
