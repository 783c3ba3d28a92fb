package child

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// A process is one, by the time at which it began: its number may be given to another one.
type process struct {
	pid, parent int
	began       string
}

// InForeground reports whether this process's group is the one that its terminal reads for. In a pipe of a shell's
// it is, whatever its input is.
func InForeground() bool {
	const group, terminal, foreground = 2, 4, 5
	line, err := os.ReadFile("/proc/self/stat")
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	return err == nil && len(fields) > foreground && string(fields[terminal]) != "0" && bytes.Equal(fields[group], fields[foreground])
}

func (p process) signal(s os.Signal) {
	syscall.Kill(p.pid, s.(syscall.Signal)) // it may have ended
}

// descendants returns what a process has started, directly or not, and is alive.
func descendants(pid int) (found []process) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := make(map[int][]process)
	for _, e := range entries {
		if number, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := look(number); ok {
				children[p.parent] = append(children[p.parent], p)
			}
		}
	}
	found = children[pid]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found
}

// alive returns those that are.
func alive(all []process) (left []process) {
	for _, p := range all {
		if now, ok := look(p.pid); ok && now.began == p.began {
			left = append(left, p)
		}
	}
	return left
}

// look reads a process; ok is false for none, and for one that has ended and isn't waited for.
// In its line the name is in parentheses, and may have anything in it.
func look(pid int) (p process, ok bool) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if err != nil || len(fields) < 20 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return process{}, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return process{pid, parent, string(fields[19])}, err == nil
}
