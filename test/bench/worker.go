package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// workerArg makes the program a worker: it runs contestants for another process of it,
// which sends orders by the standard input.
const workerArg = "-worker"

// An order tells a worker what to do. An order starts a contestant, runs a slice of the contestant at Place, or closes
// this contestant.
type order struct {
	Servers *servers `json:",omitempty"` // the first order has them, and nothing else

	Place string
	Start string // title of the measurement; empty: no new contestant
	Name  string
	Lead  bool

	Close bool
	Calls int
	Alone bool
}

// An answer is a worker's.
type answer struct {
	Sample sample
	Error  string
	Skip   bool // it is an errSkip
}

// obey obeys orders until there are no more.
func obey(in io.Reader, out io.Writer) {
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	var first order
	if orders.Decode(&first) != nil {
		return
	}
	playing := make(map[string]player)
	for {
		var o order
		if orders.Decode(&o) != nil {
			return
		}
		var a answer
		if err := o.obey(first.Servers, playing, &a.Sample); err != nil {
			a.Error, a.Skip = err.Error(), skipped(err)
		}
		if answers.Encode(a) != nil {
			return
		}
	}
}

func (o order) obey(s *servers, playing map[string]player, result *sample) (err error) {
	switch {
	case o.Start != "":
		m, c, err := find(o.Start, o.Name)
		if err != nil {
			return err
		}
		p, err := begin(m.stage(s, o.Place, o.Lead), c)
		if err == nil {
			playing[o.Place] = p
		}
		return err
	case playing[o.Place] == nil:
		return errors.New("nothing plays at " + o.Place)
	case o.Close:
		playing[o.Place].close()
		delete(playing, o.Place)
		return nil
	}
	*result, err = playing[o.Place].slice(context.Background(), o.Calls, o.Alone)
	return err
}

func find(title, name string) (*measurement, contestant, error) {
	for _, m := range measurements() {
		for _, c := range m.contestants {
			if m.title() == title && c.name == name {
				return m, c, nil
			}
		}
	}
	return nil, contestant{}, fmt.Errorf("%s has no %q", title, name)
}

// workers are the processes that have been started, by program; they are kept.
type workers struct {
	servers *servers
	running map[string][]*worker
}

func newWorkers(s *servers) *workers {
	return &workers{servers: s, running: make(map[string][]*worker)}
}

func (ws *workers) close() {
	for _, all := range ws.running {
		for _, w := range all {
			w.stop()
		}
	}
}

// begin starts a contestant in as many processes of the program as the measurement has.
func (ws *workers) begin(ctx context.Context, program string, m *measurement, name, place string) (player, error) {
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	for len(ws.running[program]) < max(m.processes, 1) {
		w, err := startWorker(program, ws.servers)
		if err != nil {
			return nil, err
		}
		ws.running[program] = append(ws.running[program], w)
	}
	f := &fleet{place: place}
	for i, w := range ws.running[program][:max(m.processes, 1)] {
		if _, err := w.order(ctx, order{Place: place, Start: m.title(), Name: name, Lead: i == 0}); err != nil {
			f.close()
			return nil, err
		}
		f.workers = append(f.workers, w)
	}
	return f, nil
}

// A fleet plays a contestant in several processes.
type fleet struct {
	place   string
	workers []*worker
}

func (f *fleet) close() {
	for i := len(f.workers) - 1; i >= 0; i-- { // the first has created what the others use
		_, _ = f.workers[i].order(context.Background(), order{Place: f.place, Close: true})
	}
}

func (f *fleet) slice(ctx context.Context, calls int, alone bool) (sample, error) {
	workers := f.workers
	if alone {
		workers = workers[:1]
	}
	samples := make([]sample, len(workers))
	errs := make([]error, len(workers))
	var wg sync.WaitGroup
	for i, w := range workers {
		wg.Go(func() {
			samples[i], errs[i] = w.order(ctx, order{Place: f.place, Calls: calls / len(workers), Alone: alone})
		})
	}
	wg.Wait()
	return sum(samples), errors.Join(errs...)
}

// sum merges the samples of processes that ran concurrently.
func sum(samples []sample) sample {
	total := samples[0]
	for _, s := range samples[1:] {
		total.Units += s.Units
		total.Elapsed = max(total.Elapsed, s.Elapsed)
		total.CPU += s.CPU
		total.Allocs += s.Allocs
		total.Bytes += s.Bytes
	}
	return total
}

// A worker is a process that obeys.
type worker struct {
	mu      sync.Mutex
	process *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	dead    error
}

func startWorker(program string, s *servers) (*worker, error) {
	w := &worker{process: exec.Command(program, workerArg)}
	detach(w.process)
	w.process.Stderr = os.Stderr
	in, err := w.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := w.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.process.Start(); err != nil {
		return nil, err
	}
	w.in, w.out = in, json.NewDecoder(bufio.NewReader(out))
	return w, json.NewEncoder(in).Encode(order{Servers: s})
}

// order waits for the answer, but not after the end of the context: the worker is ended
// then.
func (w *worker) order(ctx context.Context, o order) (sample, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead != nil {
		return sample{}, w.dead
	}
	defer context.AfterFunc(ctx, func() { _ = w.process.Process.Kill() })()
	var a answer
	err := json.NewEncoder(w.in).Encode(o)
	if err == nil {
		err = w.out.Decode(&a)
	}
	if err != nil {
		w.dead = fmt.Errorf("the worker ended: %w", err)
		return sample{}, w.dead
	}
	switch {
	case a.Skip:
		err = errSkip(a.Error)
	case a.Error != "":
		err = errors.New(a.Error)
	}
	return a.Sample, err
}

func (w *worker) stop() {
	_ = w.in.Close() // it ends when there are no more orders
	_ = w.process.Wait()
}
