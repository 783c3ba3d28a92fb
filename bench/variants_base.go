//go:build base

package main

func variants(target) []variant { return nil }
