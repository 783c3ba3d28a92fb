package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/sqlfence/sqlfence"
)

// A story is what two holders did and how the row stood after each step, for a person to read.
type story struct {
	start time.Time
	row   func() (book, error)
	steps []step
	err   error // the first one; later steps are then of no interest
}

type step struct {
	at   time.Duration
	a, b string
	row  book
}

// pausedHolder plays the story that fencing tokens are for: A is paused, B takes over and writes, A wakes up and
// writes. staleLanded is true if the database applied A's stale write.
func pausedHolder(ctx context.Context, s *service) (st *story, staleLanded bool) {
	st = &story{start: time.Now(), row: func() (book, error) { return s.book(ctx) }}

	a, err := s.takeToken(ctx)
	st.holderA(err, "takes token %d", a.Value)
	st.holderA(nil, "is paused")
	time.Sleep(100 * time.Millisecond)

	b, err := s.takeToken(ctx)
	st.holderB(err, "takes token %d", b.Value)
	_, err = s.setPrice(ctx, b, 30)
	st.holderB(err, "sets the price to 30")
	time.Sleep(100 * time.Millisecond)

	st.holderA(nil, "wakes up")
	_, err = s.setPrice(ctx, a, 20)
	if errors.Is(err, sqlfence.ErrStale) {
		st.holderA(nil, "wants 20: ErrStale")
		return st, false
	}
	st.holderA(err, "sets the price to 20")
	return st, err == nil
}

func (st *story) holderA(err error, format string, args ...any) {
	st.add(err, step{a: fmt.Sprintf(format, args...)})
}

func (st *story) holderB(err error, format string, args ...any) {
	st.add(err, step{b: fmt.Sprintf(format, args...)})
}

func (st *story) add(err error, next step) {
	next.at = time.Since(st.start)
	var readErr error
	next.row, readErr = st.row()
	st.steps = append(st.steps, next)
	st.err = cmp.Or(st.err, err, readErr)
}

// last returns the row as the story ends.
func (st *story) last() book { return st.steps[len(st.steps)-1].row }

func (st *story) print(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "  time\tA\tB\trow: price\trow: fence")
	for _, s := range st.steps {
		fmt.Fprintf(tw, "  %d ms\t%s\t%s\t%d\t%d\n", s.at.Milliseconds(), s.a, s.b, s.row.price, s.row.fence)
	}
	tw.Flush()
}
