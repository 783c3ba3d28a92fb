package conformance

import (
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence"
)

var staleChecks = []check{
	{name: "stale writes", guarantee: staleWrites,
		explanation: "G1, G2: a write with an older token than one that was seen is refused with ErrStale, with all " +
			"facts, and changes nothing, by every way of sending it."},
	{name: "current writes", guarantee: currentWrites,
		explanation: "G1, G2: a write with the token that was seen last, or a newer one, passes, and a newer one raises " +
			"the token stored in its rows."},
	{name: "unissued tokens", guarantee: unissuedTokens,
		explanation: "G2: a write with a newer token than the ledger's newest is refused with ErrNotIssued, and changes " +
			"nothing, by every way of sending it."},
	{name: "all or nothing", guarantee: allOrNothing,
		explanation: "G3: a statement that meets one row with a newer token changes no row, and a transaction can be " +
			"rolled back after it."},
	{name: "driver's error", guarantee: driversError,
		explanation: "G7: behind ErrStale errors.As finds the driver's own error, of the type that it has for other refusals."},
}

func staleWrites(f *fenced) {
	for _, fence := range f.fences() {
		db := f.open(nil, books(fence.rule()))
		f.eachWrite(func(what string, w write, send sender) {
			if fence.name == "ledger" || w.meets { // under a row fence, a new row has no stored token
				what = fence.name + ", " + what
				f.changesNothing(what, func() { f.wantStale(what, send(holding(8), db), 8, 9) })
			}
		})
	}
}

func currentWrites(f *fenced) {
	for _, fence := range f.fences() {
		db := f.open(nil, books(fence.rule()))
		f.eachWrite(func(what string, w write, send sender) {
			for _, token := range []int64{9, 10} {
				what := fmt.Sprintf("%s, %s with token %d", fence.name, what, token)
				f.reset(9)
				f.issue(token)
				f.wantPassed(what, send(holding(token), db))
				left := w.marked(token)
				if fence.name == "ledger" { // the rows' stored tokens stay, and new rows have none
					left = w.marked(9)
					if !w.meets {
						left = w.marked(0)
					}
				}
				f.want(what+" left", f.state(), left)
			}
		})
	}
}

func unissuedTokens(f *fenced) {
	for _, rules := range [][]sqlfence.Rule{{sqlfence.Ledger()}, {sqlfence.Ledger(), sqlfence.RowFence("fence_token")}} {
		db := f.open(nil, books(rules...))
		f.eachWrite(func(what string, _ write, send sender) {
			f.changesNothing(what, func() { f.wantError(what, send(holding(10), db), sqlfence.ErrNotIssued) })
		})
	}
}

func allOrNothing(f *fenced) {
	db := f.open(nil, books(sqlfence.RowFence("fence_token")))
	for _, query := range []string{"UPDATE books SET price = 30",
		"UPDATE books SET price = 30 WHERE id > 0 AND price = 10", "DELETE FROM books",
		f.bind("INSERT INTO books (id, price) VALUES (4, 30), (3, 30) " + upsert)} {
		for _, way := range ways {
			what := query + " by " + way.name
			f.reset(5)
			f.exec("UPDATE books SET fence_token = 9 WHERE id = 3")
			before := f.state()
			f.wantStale(what, way.run(holding(7), db, query), 7, 9)
			f.want(what+" left", f.state(), before)
		}
	}
	for _, fence := range f.fences() {
		db := f.open(nil, books(fence.rule()))
		f.reset(5)
		f.issue(7)
		newest := int64(7)
		if fence.name == "row fence" {
			newest = 5 // of the row that it meets
		}
		before := f.state()
		tx := must(db.BeginTx(holding(7), nil))
		defer tx.Rollback() // where the check has failed before it ends
		must(tx.ExecContext(holding(7), "UPDATE books SET price = 20 WHERE id = 1"))
		_, err := tx.ExecContext(holding(4), "UPDATE books SET price = 30 WHERE id = 2")
		f.wantStale(fence.name+", in a transaction", err, 4, newest)
		if err := tx.Rollback(); err != nil {
			f.errorf("%s: rollback after a refusal: %v", fence.name, err)
		}
		f.want(fence.name+", rolled back", f.state(), before)
	}
}

func driversError(f *fenced) {
	f.reset(9)
	_, own := f.plain.Exec(f.bind("UPDATE books SET id = ? WHERE id = ?"), 2, 1)
	if own == nil {
		f.fatalf("the driver alone: a key that is there already is no error")
	}
	for _, fence := range f.fences() {
		_, err := f.open(nil, books(fence.rule())).ExecContext(holding(8), f.bind("UPDATE books SET price = ? WHERE id = ?"),
			30, 1)
		var stale *sqlfence.StaleError
		if !errors.As(err, &stale) {
			f.errorf("%s: %s, want ErrStale", fence.name, text(err))
			continue
		}
		f.want(fence.name+": types of the driver's error", chain(stale.Unwrap()), chain(own))
	}
}
