package lease

import (
	"context"
	"iter"
	"time"

	"github.com/sqlfence/sqlfence/internal/poll"
)

// Watch yields the current holder of key, and then each change, until the loop or ctx ends; without a holder, the
// [Info] is the zero value. Watch polls every interval, which must be positive, and misses changes between two
// queries. It is for display: a standby may return old data. After [ErrInvalid] the loop ends. An error of the
// database comes with the zero Info, and the loop continues.
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
