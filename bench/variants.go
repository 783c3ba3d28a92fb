//go:build !base

package main

// variants are the options that are measured beside the defaults, on a target. The
// sqlfence of -base may lack them.
func variants(target) []variant { return nil }
