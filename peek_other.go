//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package sqlfence

import "syscall"

const canPeek = false

func peek(syscall.RawConn) (pending bool, err error) { return false, nil }
