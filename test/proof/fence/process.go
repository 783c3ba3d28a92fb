package fence

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Process is a running fence. Methods may be called concurrently.
type Process struct {
	cmd   *exec.Cmd
	said  said
	ended chan struct{}

	mu      sync.Mutex
	in      io.WriteCloser
	pending map[int64]chan Answer // nil once it has ended
}

// Start runs the program and has it open the database.
func (p Program) Start(open Request) (*Process, error) {
	cmd := exec.Command(p.Command[0], p.Command[1:]...)
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.SysProcAttr = dieWithParent()
	f := &Process{cmd: cmd, ended: make(chan struct{}), pending: make(map[int64]chan Answer)}
	cmd.Stderr = &f.said
	var err error
	if f.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go f.listen(out)
	open.Do = Open
	if a := f.Ask(open, time.Minute); a.Is != OK {
		f.Kill()
		return nil, fmt.Errorf("%s opens the database: %s %s\n%s", p.Name, a.Is, a.Error, f.Said())
	}
	return f, nil
}

// listen passes each response to the waiting caller. When the process ends, the outcome of the remaining requests is
// unknown.
func (f *Process) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a Answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			fmt.Fprintf(&f.said, "an answer: %v: %s\n", err, lines.Text())
			_ = f.cmd.Process.Kill()
			break
		}
		f.mu.Lock()
		answer := f.pending[a.ID]
		delete(f.pending, a.ID)
		f.mu.Unlock()
		if answer != nil {
			answer <- a
		}
	}
	_ = f.cmd.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, answer := range f.pending {
		answer <- Answer{ID: id, Is: Unknown, Error: "the process has ended"}
	}
	f.pending = nil
	close(f.ended)
}

// ErrSilent is the error of a request without a timely response.
var ErrSilent = errors.New("no answer in time")

// Ask sends a request and returns the answer. The answer is [Unknown] if the process has ended or doesn't respond in
// time, and [Failed] if the request wasn't sent.
func (f *Process) Ask(r Request, within time.Duration) Answer {
	line, err := json.Marshal(r)
	if err != nil {
		return Answer{ID: r.ID, Is: Failed, Error: err.Error()}
	}
	answer := make(chan Answer, 1)
	f.mu.Lock()
	if f.pending == nil {
		f.mu.Unlock()
		return Answer{ID: r.ID, Is: Failed, Error: "the process has ended"}
	}
	f.pending[r.ID] = answer
	_, _ = f.in.Write(append(line, '\n')) // an error is the end, which listen sees
	f.mu.Unlock()
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case a := <-answer:
		return a
	case <-limit.C:
		return Answer{ID: r.ID, Is: Unknown, Error: ErrSilent.Error()}
	}
}

// Signal sends a signal, such as SIGSTOP.
func (f *Process) Signal(s syscall.Signal) { _ = f.cmd.Process.Signal(s) }

// Kill ends the process at once and waits for that.
func (f *Process) Kill() {
	_ = f.cmd.Process.Kill()
	<-f.ended
}

// Ended is closed when the process has ended.
func (f *Process) Ended() <-chan struct{} { return f.ended }

// Said returns the beginning of the process's standard error.
func (f *Process) Said() string { return f.said.String() }

// said keeps the beginning of a text.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text.Len() < 64<<10 {
		s.text.Write(b)
	}
	return len(b), nil
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
