package lease

import (
	"context"
	"iter"
	"time"

	"github.com/sqlfence/sqlfence/internal/poll"
)

// Watch tells who holds key, such as the leader of an [Election]: first as it is, and then whenever
// it has changed, until the loop is left or ctx ends. If the lease has no holder, the Info is the
// zero value. It asks the database every interval, over 0, so what lies between two questions isn't
// seen. It is for display and diagnostics, as [Info] is: a standby may answer, and be behind.
//
//	for leader, err := range leases.Watch(ctx, "jobs", time.Second) {
//		...
//	}
//
// Errors are [ErrInvalid] for the key or the interval, after which the loop ends; or the
// database's, each time that it can't be asked, with a zero Info that says nothing.
func (m *Leases) Watch(ctx context.Context, key string, interval time.Duration) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		key, err := NormalizeKey(key)
		if err == nil && interval <= 0 {
			err = invalid("an interval of %v, want more than 0", interval)
		}
		if err != nil {
			yield(Info{}, err)
			return
		}
		ask := func(ctx context.Context) (Info, error) {
			found, _, err := m.show(ctx, "key", key)
			return found, err
		}
		same := func(a, b Info) bool { return a.Token == b.Token }
		poll.Changes(ctx, interval, ask, same)(yield)
	}
}
