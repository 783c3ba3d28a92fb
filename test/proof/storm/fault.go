//go:build linux

package storm

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// A Fault happens again and again, on average after Every.
type Fault struct {
	Kind  string
	Every time.Duration
	Do    func(s *Storm, rng *rand.Rand)
}

// Faults returns those that a target can have, at a rate: 1 is about 20 a second where there is a network. Those that
// stop everything for a second or two, such as a server's crash, are rare.
func Faults(db *Target, rate float64) []Fault {
	list := []Fault{
		{"process stopped", 500 * time.Millisecond, stop},
		{"process killed", 4 * time.Second, kill},
	}
	if db.Wire != nil {
		for _, b := range Breaks {
			every := 400 * time.Millisecond
			if b == Hole {
				every *= 5 // what is in it has locks until the server ends its transaction
			}
			list = append(list, Fault{string(b), every, func(s *Storm, _ *rand.Rand) { s.Target.Wire.Arm(b) }})
		}
		list = append(list,
			Fault{"latency", 3 * time.Second, slow},
			Fault{"session ended", 250 * time.Millisecond, func(s *Storm, rng *rand.Rand) { s.Target.endOne(rng) }},
			Fault{"server killed", 30 * time.Second, func(s *Storm, _ *rand.Rand) { s.Target.crash() }})
	} else {
		list[0].Every *= 2 // a process that has the file's lock stops all
		list = append(list, Fault{"file locked", 700 * time.Millisecond, lockFile})
	}
	list = append(list, db.faults...)
	list = slices.DeleteFunc(list, func(f Fault) bool { return slices.Contains(db.without, f.Kind) })
	for i := range list {
		list[i].Every = time.Duration(float64(list[i].Every) / rate)
	}
	return list
}

// Processes returns the faults of processes alone.
func Processes(rate float64) []Fault { return Faults(&Target{}, rate)[:2] }

// break_ has the faults happen until a time, one after the other.
func (s *Storm) break_(until time.Time) {
	rng := rand.New(rand.NewPCG(s.Seed, uint64(s.id.Add(1))))
	next := make([]time.Time, len(s.Faults))
	for i, f := range s.Faults {
		next[i] = time.Now().Add(pause(rng, f.Every))
	}
	for {
		first := -1
		for i := range next {
			if first < 0 || next[i].Before(next[first]) {
				first = i
			}
		}
		if first < 0 || next[first].After(until) {
			time.Sleep(time.Until(until))
			return
		}
		time.Sleep(time.Until(next[first]))
		f := s.Faults[first]
		f.Do(s, rng)
		s.counts[f.Kind]++
		next[first] = time.Now().Add(pause(rng, f.Every))
	}
}

func pause(rng *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(rng.ExpFloat64() * float64(mean))
}

// stop has a process stand still, mostly for longer than a lease lives.
func stop(s *Storm, rng *rand.Rand) {
	slot := s.slots[rng.IntN(len(s.slots))]
	slot.signal(syscall.SIGSTOP)
	time.AfterFunc(time.Duration(rng.Int64N(int64(3*s.TTL))), func() { slot.signal(syscall.SIGCONT) })
}

func kill(s *Storm, rng *rand.Rand) { s.slots[rng.IntN(len(s.slots))].signal(syscall.SIGKILL) }

func slow(s *Storm, rng *rand.Rand) {
	s.Target.Wire.Delay(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
	time.AfterFunc(300*time.Millisecond, func() { s.Target.Wire.Delay(0) })
}

// lockFile keeps SQLite's file from all others for a while.
func lockFile(s *Storm, rng *rand.Rand) {
	if tx, err := s.Target.Admin.Begin(); err == nil {
		_, _ = tx.Exec("DELETE FROM history WHERE seq = -1")
		time.Sleep(time.Duration(rng.Int64N(int64(100 * time.Millisecond))))
		_ = tx.Rollback()
	}
}
