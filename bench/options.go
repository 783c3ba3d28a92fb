//go:build !base

package main

import "github.com/sqlfence/sqlfence"

// options are those of sqlfence that are measured, beside its defaults. Options that an
// older checkout lacks belong here, so that -base still compiles.
func options(target) []sqlfence.Option { return nil }
