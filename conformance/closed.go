package conformance

import (
	"context"
	"errors"
	"slices"

	"github.com/sqlfence/sqlfence"
)

var closedChecks = []check{
	{name: "fail closed", guarantee: failClosed,
		explanation: "G4: what may write to a registered table and can't be guarded is refused with a reason, before it " +
			"reaches the driver."},
	{name: "no token", guarantee: noToken,
		explanation: "G5: a write without a token is refused before it reaches the driver, unless the table is Optional."},
	{name: "bypass and observe", guarantee: bypassAndObserve,
		explanation: "G5: Bypass with a reason and Observe mode let a write through, and the observer gets an event; " +
			"Bypass without a reason doesn't."},
	{name: "observer", guarantee: observer,
		explanation: "G5: the observer gets one event for each statement that was refused, bypassed or would have been " +
			"refused, and none for the others."},
}

// unguardable are statements that no guard is known for in any dialect.
var unguardable = []string{
	"DROP TABLE books",
	"ALTER TABLE books RENAME TO old",
	"DROP TABLE pens; UPDATE books SET price = 40",
	"UPDATE pens SET price = 30; UPDATE books SET price = 30; COMMIT",
	"UPDATE books SET price = 30, fence_token = 1",
	`UPDATE books SET "fence_token" = 1`,
	"INSERT INTO books (id, fence_token) VALUES (7, 1)",
	"INSERT INTO books VALUES (7, 'i7', 30, 0, NULL, NULL, 1, 1)",
	"UPDATE books SET price = 30 WHERE id = 1) OR (true",
	"UPDATE books SET price = 30 WHERE 'unfinished",
}

func failClosed(f *fenced) {
	rec := f.recorder()
	db := f.open(rec, books(sqlfence.RowFence("fence_token")))
	f.reset(1)
	before := f.state()
	for _, query := range slices.Concat(unguardable, f.dialect.unguardable) {
		for _, way := range ways {
			rec.take()
			err := way.run(holding(5), db, query)
			var e *sqlfence.UnguardableError
			if !errors.As(err, &e) || !errors.Is(err, sqlfence.ErrUnguardable) || e.Reason == "" {
				f.errorf("%s by %s: error %s, want ErrUnguardable with a reason", query, way.name, text(err))
			}
			f.want(query+" by "+way.name+": statements that reached the driver", rec.take().statements(), []string(nil))
		}
	}
	f.want("left", f.state(), before)
}

func noToken(f *fenced) {
	other := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "pens", Value: 5})
	for _, fence := range f.fences() {
		rec := f.recorder()
		db := f.open(rec, books(fence.rule()))
		f.reset(1)
		before := f.state()
		f.eachWrite(func(what string, _ write, send sender) {
			what = fence.name + ", " + what
			for _, ctx := range []context.Context{context.Background(), other, holding(0)} {
				rec.take()
				f.wantError(what, send(ctx, db), sqlfence.ErrNoFence)
				for _, call := range rec.take() {
					if call.kind == "exec" || call.kind == "query" || call.kind == "stmt exec" || call.kind == "stmt query" {
						f.errorf("%s: reached the driver: %s %s", what, call.kind, call.query)
					}
				}
			}
			f.wantError(what+", token over the limit", send(holding(sqlfence.MaxToken+1), db), sqlfence.ErrTokenLimit)
		})
		f.want(fence.name+" left", f.state(), before)

		optional := f.open(nil, books(fence.rule(), sqlfence.Optional()))
		f.must(ways[0].run(context.Background(), optional, f.bind(writes[0].query), 31, 2))
		f.reset(9)
		f.wantStale(fence.name+", optional", ways[0].run(holding(8), optional, f.bind(writes[0].query), 32, 1), 8, 9)
	}
}

func bypassAndObserve(f *fenced) {
	for _, fence := range f.fences() {
		db := f.open(nil, books(fence.rule()))
		observing := f.open(nil, books(fence.rule()), sqlfence.WithMode(sqlfence.Observe))
		for _, way := range ways {
			what := fence.name + " by " + way.name
			query, args := f.bind(writes[0].query), writes[0].args
			f.reset(9)
			before := f.state()
			f.events.take()
			f.wantStale(what+", bypass without a reason", way.run(sqlfence.Bypass(holding(8), ""), db, query, args...), 8, 9)
			f.want(what+", bypass without a reason, left", f.state(), before)
			f.observed(what, sqlfence.Refused)

			f.must(way.run(sqlfence.Bypass(context.Background(), "repair"), db, query, args...))
			f.want(what+", bypass, left", f.state(), "1:30@9 2:10@9 3:10@9")
			for _, e := range f.observed(what+", bypass", sqlfence.Bypassed) {
				f.want(what+", bypass, its reason", e.Reason, "repair")
			}

			f.reset(9)
			f.must(way.run(holding(8), observing, query, args...))
			f.want(what+", observed, left", f.state(), "1:30@9 2:10@9 3:10@9")
			for _, e := range f.observed(what+", observed", sqlfence.WouldRefuse) {
				f.wantStale(what+", observed", e.Err, 8, 9)
			}
			f.must(way.run(context.Background(), observing, query, args...))
			for _, e := range f.observed(what+", observed without a token", sqlfence.WouldRefuse) {
				f.wantError(what+", observed without a token", e.Err, sqlfence.ErrNoFence)
			}
		}
	}
}

func observer(f *fenced) {
	for _, fence := range f.fences() {
		db := f.open(nil, books(fence.rule()))
		observing := f.open(nil, books(fence.rule()), sqlfence.WithMode(sqlfence.Observe))
		f.eachWrite(func(what string, w write, send sender) {
			if !w.meets {
				return
			}
			what = fence.name + ", " + what
			f.reset(9)
			f.events.take()
			// Separate checks test the results of the writes.
			_ = send(holding(8), db)
			f.wantEvents(what+", stale", sqlfence.Refused)
			_ = send(context.Background(), db)
			f.wantEvents(what+", no token", sqlfence.Refused)
			_ = send(holding(8), observing)
			f.wantEvents(what+", observed", sqlfence.WouldRefuse)
			_ = send(holding(9), db)
			f.wantEvents(what + ", passed")
			_ = send(sqlfence.Bypass(context.Background(), "repair"), db)
			f.wantEvents(what+", bypassed", sqlfence.Bypassed)
		})
	}
}
