package conformance

import (
	"context"

	"github.com/sqlfence/sqlfence"
)

var observerChecks = []check{
	{name: "observer", guarantee: observer,
		explanation: "G5: the observer gets one event for each statement that was refused, bypassed or would have been " +
			"refused, and none for the others."},
}

func observer(f *fenced) {
	for _, fence := range fences {
		db := f.open(nil, books(fence.rule()))
		observing := f.open(nil, books(fence.rule()), sqlfence.WithMode(sqlfence.Observe))
		for _, w := range f.writes() {
			if !w.meets {
				continue
			}
			for _, way := range ways {
				what := fence.name + ", " + w.name + " by " + way.name
				query := f.bind(w.query)
				f.reset(9)
				f.events.take()
				// What comes of the writes is other checks' matter.
				_ = way.run(holding(8), db, query, w.args...)
				f.wantEvents(what+", stale", sqlfence.Refused)
				_ = way.run(context.Background(), db, query, w.args...)
				f.wantEvents(what+", no token", sqlfence.Refused)
				_ = way.run(holding(8), observing, query, w.args...)
				f.wantEvents(what+", observed", sqlfence.WouldRefuse)
				_ = way.run(holding(9), db, query, w.args...)
				f.wantEvents(what + ", passed")
				_ = way.run(sqlfence.Bypass(context.Background(), "repair"), db, query, w.args...)
				f.wantEvents(what+", bypassed", sqlfence.Bypassed)
			}
		}
	}
}
