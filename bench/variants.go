//go:build !base

package main

import "github.com/sqlfence/sqlfence"

// variants are the options that are measured beside the defaults, on a target. The
// sqlfence of -base may lack them.
func variants(t target) []variant {
	if t.keeps {
		return nil
	}
	return []variant{{cached, []sqlfence.Option{sqlfence.WithStatementCache(64)}}}
}
