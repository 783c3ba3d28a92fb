package main

import (
	"context"

	_ "github.com/sqlfence/sqlfence"
)

const revision = 7

func work(ctx context.Context) {}

func report(ctx context.Context) error { return nil }
