package conformance

import (
	"context"
	"database/sql"
	"slices"
)

var callChecks = []check{
	{name: "round trips", guarantee: roundTrips,
		explanation: "G6: a guarded statement makes the same calls of the driver as the plain one: when it passes, when " +
			"it is refused, and when it meets no row."},
	{name: "contexts", guarantee: contexts,
		explanation: "G7: the driver gets the caller's context with each call, so that it can be cancelled and a driver " +
			"or tracer can read its values."},
	{name: "nothing leaks", guarantee: nothingLeaks,
		explanation: "G7: connections, statements, rows and transactions that sqlfence opens at the driver are closed " +
			"again, also after refusals."},
}

func roundTrips(f *fenced) {
	for _, fence := range f.fences() {
		plainRec, rec := f.recorder(), f.recorder()
		plain := f.closing(sql.OpenDB(plainRec), nil)
		db := f.open(rec, books(fence.rule()))
		f.eachWrite(func(what string, w write, send sender) {
			what = fence.name + ", " + what
			f.reset(9)
			if w.name == writes[0].name || w.name == "upsert" { // once, sqlfence may query the server
				_ = send(holding(8), db)
			}
			f.must(plain.Ping())
			f.must(db.Ping())
			plainRec.take()
			f.must(send(holding(9), plain))
			want := plainRec.take().kinds()
			calls := func(outcome string, token int64) error {
				rec.take()
				err := send(holding(token), db)
				got := rec.take().kinds()
				if outcome == "refused" && len(got) > 0 && got[len(got)-1] == "rollback" {
					got[len(got)-1] = "commit" // the way ends its transaction according to the outcome
				}
				f.want(what+", "+outcome+": calls", got, want)
				return err
			}
			f.reset(9)
			if fence.name == "ledger" || w.meets {
				f.wantStale(what, calls("refused", 8), 8, 9)
			}
			f.must(calls("passed", 9))
			if w.meets {
				f.reset(9)
				f.exec("DELETE FROM books")
				f.must(calls("no such row", 9))
			}
		})
	}
}

type contextKey struct{}

func contexts(f *fenced) {
	rec := f.recorder()
	db := f.open(rec, books(fences[0].rule()))
	f.reset(9)
	for _, token := range []int64{8, 9} {
		ctx, cancel := context.WithCancel(context.WithValue(holding(token), contextKey{}, "the caller's"))
		w := writes[0]
		for _, way := range ways {
			rec.take()
			_ = way.run(ctx, db, f.bind(w.query), w.args...) // what comes of it is another check's matter
			f.must(db.PingContext(ctx))
			for _, call := range rec.take() {
				if call.ctx == nil {
					continue // of a method without a context
				}
				if call.ctx.Value(contextKey{}) != "the caller's" || call.ctx.Done() == nil {
					f.errorf("%s by %s: %s came with another context than the caller's", w.name, way.name, call.kind)
				}
			}
		}
		cancel()
	}
}

func nothingLeaks(f *fenced) {
	for _, fence := range f.fences() {
		rec := f.recorder()
		db := f.open(rec, books(fence.rule()))
		for _, w := range f.writes() {
			for _, way := range ways {
				f.reset(9)
				for _, ctx := range []context.Context{holding(8), holding(9), context.Background()} {
					_ = way.run(ctx, db, f.bind(w.query), w.args...) // what comes of it is another check's matter
				}
				_ = way.run(holding(9), db, "UPDATE books SET price = 30; UPDATE books SET price = 40")
			}
			rows, err := db.QueryContext(holding(9), "UPDATE books SET price = price RETURNING id")
			if err == nil {
				rows.Next()
				f.must(rows.Close())
			}
		}
		f.want(fence.name+": connections in use", db.Stats().InUse, 0)
		f.must(db.Close())
		open := rec.left()
		slices.Sort(open)
		f.want(fence.name+": left open at the driver", open, []string(nil))
	}
}
