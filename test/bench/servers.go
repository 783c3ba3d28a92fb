package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// servers are what a process has to know of those that this run has started, all of them
// on loopback, with their files in Folder.
type servers struct {
	Folder   string
	Database endpoint
	Redis    map[string]endpoint // by durability
	Etcd     endpoint
	Versions []string
	Missing  map[string]string // why there is none, by name

	DatabaseProcess int // process id

	proxies *proxies // in the process that runs the measurements
}

// An endpoint is a server's address, or its data source name.
type endpoint struct {
	Near string
	Far  string // through a proxy; empty without a server
}

// at returns the address for a stage, or why there is none.
func (e endpoint) at(s *stage, name string) (string, error) {
	switch {
	case e.Near == "":
		return "", errSkip(fmt.Sprintf("no %s: %s", name, s.servers.Missing[name]))
	case s.far:
		return e.Far, nil
	}
	return e.Near, nil
}

// newFolder creates the folder of the servers' files. Other users may enter the folder, because PostgreSQL doesn't run
// as root.
func newFolder() (string, error) {
	folder, err := os.MkdirTemp("", "sqlfence-bench")
	if err != nil {
		return "", err
	}
	return folder, os.Chmod(folder, 0o755)
}

// startServers starts each available server. The returned function stops the servers and waits for their end.
func startServers(ctx context.Context, folder string, delay time.Duration) (*servers, func() error) {
	s := &servers{
		Folder: folder, Redis: make(map[string]endpoint), Missing: make(map[string]string),
		proxies: &proxies{delay: delay},
	}
	var running []*process
	for _, start := range []struct {
		name  string
		start func(context.Context, *servers) (*process, error)
	}{
		{"PostgreSQL", startPostgres},
		{redisName(redisNo), redisStarter(redisNo)},
		{redisName(redisEverySecond), redisStarter(redisEverySecond)},
		{redisName(redisAlways), redisStarter(redisAlways)},
		{"etcd", startEtcd},
	} {
		p, err := start.start(ctx, s)
		if err != nil {
			s.Missing[start.name] = err.Error()
		}
		if p != nil {
			running = append(running, p)
		}
	}
	return s, func() error {
		s.proxies.close()
		var errs []error
		for _, p := range running {
			errs = append(errs, p.stop())
		}
		return errors.Join(errs...)
	}
}

// stillness is longer than a machine that is busy stands still: so long a server, or a lock, has time.
const stillness = 5 * time.Minute

// A process is a server that was started.
type process struct {
	cmd    *exec.Cmd
	signal os.Signal // that ends it soon
	log    strings.Builder
	done   chan struct{} // closed when it has ended
}

func startProcess(cmd *exec.Cmd, signal os.Signal) (*process, error) {
	p := &process{cmd: cmd, signal: signal, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = cmd.Wait(); close(p.done) }()
	return p, nil
}

// ready waits until the server answers.
func (p *process) ready(ctx context.Context, answers func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stillness)
	defer cancel()
	for {
		err := answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it doesn't answer: %w", err)
		case <-p.done:
			return fmt.Errorf("it has ended: %s", strings.TrimSpace(p.log.String()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *process) stop() error {
	_ = p.cmd.Process.Signal(p.signal)
	select {
	case <-p.done:
		return nil
	case <-time.After(stillness):
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
		<-p.done
		return fmt.Errorf("%s had to be killed", p.cmd.Path)
	}
}

// freePort returns a port of loopback that nobody listened at a moment ago.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// endpointAt is the server at a port of loopback, with a proxy before it. name makes a
// data source name of an address.
func (s *servers) endpointAt(port int, name func(address string) string) (endpoint, error) {
	far, err := s.proxies.before(loopback(port))
	if err != nil {
		return endpoint{}, err
	}
	return endpoint{Near: name(loopback(port)), Far: name(far)}, nil
}
