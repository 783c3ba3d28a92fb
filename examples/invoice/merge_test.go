package main

import (
	"maps"
	"slices"
	"testing"
)

func TestMerge(t *testing.T) {
	shown := invoice{Customer: "Engines", Total: 100, Notes: "first\nsecond"}
	for _, test := range []struct {
		name                 string
		customer, total      string
		theirs               invoice
		wantCustomer, wanted string
		want                 []difference
	}{
		{"nobody", "Engines", "100", shown, "Engines", "100", nil},
		{"the user alone", "Engines", "120", shown, "Engines", "120",
			[]difference{{Field: "total", Yours: "120", Theirs: "100"}}},
		{"the others alone", "Engines", "100", invoice{Customer: "Looms", Total: 100, Notes: shown.Notes}, "Looms", "100",
			[]difference{{Field: "customer", Yours: "Engines", Theirs: "Looms", Taken: true}}},
		{"one field each", "Engines", "120", invoice{Customer: "Looms", Total: 100, Notes: shown.Notes}, "Looms", "120",
			[]difference{{Field: "customer", Yours: "Engines", Theirs: "Looms", Taken: true}, {Field: "total", Yours: "120", Theirs: "100"}}},
		{"both the same field", "Engines", "120", invoice{Customer: "Engines", Total: 130, Notes: shown.Notes}, "Engines", "130",
			[]difference{{Field: "total", Yours: "120", Theirs: "130", Both: true}}},
		{"both the same way", "Engines", "120", invoice{Customer: "Engines", Total: 120, Notes: shown.Notes}, "Engines", "120", nil},
		{"no number", "Engines", "dear", shown, "Engines", "dear",
			[]difference{{Field: "total", Yours: "dear", Theirs: "100"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			yours := draft{Shown: shown.texts(), Yours: texts{"customer": test.customer, "total": test.total, "notes": shown.Notes}}
			merged, all := merge(yours, test.theirs)
			if want := (texts{"customer": test.wantCustomer, "total": test.wanted, "notes": shown.Notes}); !maps.Equal(merged, want) {
				t.Errorf("merged %v, want %v", merged, want)
			}
			if !slices.Equal(all, test.want) {
				t.Errorf("differences %+v, want %+v", all, test.want)
			}
		})
	}
}

// A draft without the shown values doesn't show what the user has changed, so the user decides each difference.
func TestMergeWithoutWhatWasShown(t *testing.T) {
	theirs := invoice{Customer: "Looms", Total: 100}
	merged, all := merge(draft{Yours: texts{"customer": "Engines", "total": "100", "notes": "new"}}, theirs)
	if !maps.Equal(merged, theirs.texts()) {
		t.Errorf("merged %v, want %v", merged, theirs.texts())
	}
	if len(all) != 2 || !all[0].Both || !all[1].Both {
		t.Errorf("differences %+v, want the customer and the notes, both to decide", all)
	}
}

// Blanks that a browser removes are no change by the user, and don't undo blanks that another user has saved.
func TestMergeKeepsBlanks(t *testing.T) {
	theirs := invoice{Customer: " Looms", Total: 100, Notes: "\nfirst\n"}
	yours := draft{Shown: texts{"customer": "Looms", "total": "90", "notes": "first"}, Yours: texts{"customer": "Looms", "total": "90", "notes": "first"}}
	merged, all := merge(yours, theirs)
	if !maps.Equal(merged, theirs.texts()) {
		t.Errorf("merged %v, want %v", merged, theirs.texts())
	}
	if len(all) != 1 || all[0].Field != "total" || !all[0].Taken {
		t.Errorf("differences %+v, want the total alone, taken from them", all)
	}
}
