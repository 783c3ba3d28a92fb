//go:build linux

package storm

import (
	"fmt"
	"maps"
	"sync"
	"syscall"
	"time"

	"github.com/sqlfence/sqlfence/test/proof/fence"
)

// A slot runs one process at a time, and replaces an ended process.
type slot struct {
	storm  *Storm
	number int

	mu      sync.Mutex
	process *fence.Process
	killed  bool  // by a fault
	opened  bool  // a process has run here
	refused error // why the last one doesn't
}

// ask sends a request to the process, and starts one where there is none.
func (s *slot) ask(r fence.Request) fence.Answer {
	p, err := s.running()
	if err != nil {
		return fence.Answer{ID: r.ID, Is: fence.Failed, Error: err.Error()}
	}
	a := p.Ask(r, silence)
	if a.Error == fence.ErrSilent.Error() {
		s.storm.wrong.add("no answer to: " + r.Do)
		p.Kill()
	}
	return a
}

func (s *slot) running() (*fence.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		select {
		case <-s.process.Ended():
			if !s.killed {
				s.storm.wrong.add("a process has ended by itself: " + s.process.Said())
			}
		default:
			return s.process, nil
		}
	}
	p, err := s.storm.Program.Start(s.storm.opening(s.number, false))
	if err != nil { // the server may be away
		time.Sleep(20 * time.Millisecond)
		s.refused = err
		return nil, err
	}
	s.process, s.killed, s.opened = p, false, true
	return p, nil
}

func (s *slot) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.killed = s.killed || sig == syscall.SIGKILL
		s.process.Signal(sig)
	}
}

// end kills the process. One that has never opened the database has had no part in the storm.
func (s *slot) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opened {
		s.storm.wrong.add(fmt.Sprintf("process %d has never run: %v", s.number+1, s.refused))
	}
	if s.process != nil {
		s.process.Kill()
		s.process = nil
	}
}

// oddities counts reportable observations by text.
type oddities struct {
	mu   sync.Mutex
	seen map[string]int
}

func (o *oddities) add(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = make(map[string]int)
	}
	if len(o.seen) < 100 || o.seen[text] > 0 {
		o.seen[text]++
	}
}

func (o *oddities) list() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.seen)
}
