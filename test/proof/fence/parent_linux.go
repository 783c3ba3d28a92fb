package fence

import "syscall"

// dieWithParent has a process not outlive a suite that is killed.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
