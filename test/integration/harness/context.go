package harness

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// Holding returns a context with a token of the books.
func Holding(t testing.TB, value int64) context.Context {
	return sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: value})
}

// HoldingKeys returns a context with tokens of single books: key, value, ...
func HoldingKeys(t testing.TB, pairs ...int64) context.Context {
	ctx := t.Context()
	for pair := range slices.Chunk(pairs, 2) {
		ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: fmt.Sprintf("books/%d", pair[0]), Value: pair[1]})
	}
	return ctx
}

// WithSerial returns a context with the version of a book that its caller read.
func WithSerial(t testing.TB, serial int64) context.Context {
	return sqlfence.WithSerial(t.Context(), serial)
}
