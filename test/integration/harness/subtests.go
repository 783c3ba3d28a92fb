package harness

import (
	"sync"
	"testing"
)

// Subtests counts the subtests that their parent judges together. The zero value is ready to use.
type Subtests struct {
	mu             sync.Mutex
	started, ended int
}

// Run calls t.Run. The subtest counts as run if it reaches its end. A subtest doesn't count if -run or -skip excludes
// the subtest, or if the subtest skips itself or ends by FailNow. A subtest with nested subtests calls NeedAll, and
// doesn't count unless all nested subtests have run.
func (s *Subtests) Run(t *testing.T, name string, test func(t *testing.T)) (passed bool) {
	t.Helper()
	s.mu.Lock()
	s.started++
	s.mu.Unlock()
	return t.Run(name, func(t *testing.T) {
		test(t)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended++
	})
}

// NeedAll skips t, the parent, unless all of the subtests have run. Parallel subtests need a parent between them and t,
// because t goes on before they run.
func (s *Subtests) NeedAll(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended < s.started || s.started == 0 {
		t.Skipf("%d of %d subtests have run: there is no judging them together", s.ended, s.started)
	}
}
