//go:build base

package main

import "github.com/sqlfence/sqlfence"

func options(target) []sqlfence.Option { return nil }
