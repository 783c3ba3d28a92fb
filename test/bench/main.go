// Command bench compares sqlfence with the usual code without sqlfence, in one run, and writes the results as Markdown
// and plots.
//
//	go run ./test/bench -out docs                   # everything, about 20 minutes
//	go run ./test/bench -only leases -rounds 15     # a part of it, more exactly
//	go run ./test/bench -base ../older-checkout     # sqlfence of another checkout, in the same rounds
//	go run ./test/bench -short                      # a look whether everything runs
//
// The command starts PostgreSQL, Redis and etcd in a temporary folder, on loopback, and stops and removes the servers
// at the end, even after an interrupt. A server that can't run is reported, and the other measurements continue.
//
// Contestants take turns: each has a slice of every round, and the result is the median of the ratios to the first
// contestant's slice in the same round. So a disturbance of the machine that outlasts a round affects all contestants
// equally. Do not compare absolute times of two runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

// A config holds the values of the flags.
type config struct {
	out    string
	base   string
	only   *regexp.Regexp
	rounds int
	slice  time.Duration
	delay  time.Duration
	short  bool
	log    io.Writer
}

func main() {
	if helps(os.Args[1:]) {
		return
	}
	c := config{log: os.Stderr}
	var only string
	var list bool
	flag.StringVar(&c.out, "out", "", "folder that gets benchmarks.md, and its tables in the folder data; a new one in the temporary folder by default")
	flag.StringVar(&c.base, "base", "", "folder of another checkout of sqlfence, to be measured in the same rounds")
	flag.StringVar(&only, "only", "", "measure only what this regular expression finds in, such as 'leases' or 'bulk.*mattn'")
	flag.IntVar(&c.rounds, "rounds", 7, "rounds in which every contestant has a slice")
	flag.DurationVar(&c.slice, "slice", 40*time.Millisecond, "length of a slice")
	flag.DurationVar(&c.delay, "delay", time.Millisecond, "delay of the network in each direction, where there is one: a round trip takes twice as long")
	flag.BoolVar(&c.short, "short", false, "one call in one round, to see whether everything runs; the figures mean nothing")
	flag.BoolVar(&list, "list", false, "print what would be measured")
	flag.Parse()
	if err := c.check(only, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if list {
		for _, m := range c.selected() {
			fmt.Println(m.title())
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, c)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// helps reports whether another process of the program started this process, and does the work for that process.
func helps(args []string) bool {
	switch {
	case len(args) == 1 && args[0] == workerArg:
		obey(os.Stdin, os.Stdout)
	case len(args) == 2 && args[0] == etcdArg:
		runEtcd(args[1])
	default:
		return false
	}
	return true
}

func (c *config) check(only string, rest []string) (err error) {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected arguments: %q", rest)
	}
	if c.short {
		c.rounds, c.slice = 1, 1
	}
	if c.rounds < 1 || c.slice <= 0 || c.delay < 0 {
		return errors.New("rounds and slices must be positive, and the delay not negative")
	}
	c.only, err = regexp.Compile(only)
	return err
}

// selected returns the measurements that -only selects.
func (c *config) selected() []*measurement {
	var chosen []*measurement
	for _, m := range measurements() {
		if c.only.MatchString(m.title()) && !(c.short && m.long) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// run measures and writes the report.
func run(ctx context.Context, c config) (err error) {
	chosen := c.selected()
	if len(chosen) == 0 {
		return errors.New("nothing to measure: see -list")
	}
	folder, err := newFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if c.out == "" {
		if c.out, err = os.MkdirTemp("", "sqlfence-benchmarks"); err != nil {
			return err
		}
	}
	var base string
	if c.base != "" {
		if base, err = buildBase(ctx, c.base, folder); err != nil {
			return err
		}
	}
	s, stop := startServers(ctx, folder, c.delay)
	defer func() { err = errors.Join(err, stop()) }()
	for name, why := range s.Missing {
		fmt.Fprintf(c.log, "without %s: %v\n", name, why)
	}

	r := newRunner(c, s, base)
	defer r.close()
	results := &results{config: c, servers: s, started: time.Now()}
	for i, m := range chosen {
		begun := time.Now()
		results.add(r.measure(ctx, m))
		fmt.Fprintf(c.log, "%3d/%d %5.1f s  %s\n", i+1, len(chosen), time.Since(begun).Seconds(), m.title())
		if ctx.Err() != nil {
			return errors.New("interrupted; nothing was written")
		}
	}
	results.took = time.Since(results.started)
	return writeReport(c.out, results)
}
