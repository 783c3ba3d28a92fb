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
		f.eachWrite(func(what string, w write, send sender) {
			if !w.meets {
				return
			}
			what = fence.name + ", " + what
			f.reset(9)
			f.events.take()
			// What comes of the writes is other checks' matter.
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
