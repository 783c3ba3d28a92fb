package child

import (
	"bytes"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A process is identified by pid and start time, because pids are reused.
type process struct {
	pid, parent, group int
	began              string
}

// InForeground reports whether this process's group is the terminal's foreground group. That is so in a shell's
// pipeline, even if this process reads from the pipe.
func InForeground() bool {
	const group, terminal, foreground = 2, 4, 5
	line, err := os.ReadFile("/proc/self/stat")
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	return err == nil && len(fields) > foreground && string(fields[terminal]) != "0" &&
		bytes.Equal(fields[group], fields[foreground])
}

func (p process) signal(s os.Signal) {
	syscall.Kill(p.pid, s.(syscall.Signal)) // it may have ended
}

// adopt makes this process the parent of all descendants that lose theirs, and returns its children.
func adopt() []process {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // since Linux 3.4; without it some may get away
	return slices.DeleteFunc(processes(false), func(p process) bool { return p.parent != os.Getpid() })
}

// reap waits for adopted processes as they end, until the command (pid) has ended.
func reap(pid int, ended <-chan struct{}) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	defer signal.Stop(signals)
	for {
		select {
		case <-ended:
			return
		case <-signals:
			for _, p := range processes(true) {
				if p.parent == os.Getpid() && p.pid != pid {
					_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
				}
			}
		}
	}
}

// leaves reports whether something is left that the command has started.
func (c *Child) leaves() bool {
	return slices.ContainsFunc(descendants(c.others), func(p process) bool { return p.pid != c.cmd.Process.Pid })
}

// descendants returns the living direct and indirect children of this process, without others and the descendants of
// others.
func descendants(others []process) (found []process) {
	children := make(map[int][]process)
	for _, p := range processes(false) {
		if !slices.ContainsFunc(others, func(o process) bool { return o.pid == p.pid && o.began == p.began }) {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	found = children[os.Getpid()]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found
}

// processes returns all running processes, or all zombies if dead is set.
func processes(dead bool) (all []process) {
	entries, _ := os.ReadDir("/proc") // without it none is known
	for _, e := range entries {
		if number, err := strconv.Atoi(e.Name()); err == nil {
			if p, isDead, ok := look(number); ok && isDead == dead {
				all = append(all, p)
			}
		}
	}
	return all
}

// look reads the process pid from /proc; dead is true for a zombie, ok is false if there is no such process. It skips
// the program's name up to the last parenthesis, because the name may contain blanks and parentheses.
func look(pid int) (p process, dead, ok bool) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if err != nil || len(fields) < 20 || fields[0][0] == 'X' {
		return process{}, false, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	group, err2 := strconv.Atoi(string(fields[2]))
	return process{pid, parent, group, string(fields[19])}, fields[0][0] == 'Z', err == nil && err2 == nil
}

func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
