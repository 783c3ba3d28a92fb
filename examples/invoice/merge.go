package main

import (
	"net/http"
	"strconv"
	"strings"
)

// A draft is what a user has typed, beside the invoice that the user was shown: from
// both together can be told which fields the user has changed.
type draft struct {
	Serial int64 // the version that was shown
	Yours  texts
	Shown  texts
}

// texts are the fields of an invoice as a form shows them, by their names.
type texts map[string]string

// fields are those that a user can change, in the order of the form.
var fields = []string{"customer", "total", "notes"}

func (i invoice) texts() texts {
	return texts{"customer": i.Customer, "total": strconv.FormatInt(i.Total, 10), "notes": i.Notes}
}

// fromForm reads what a user has sent. It fails if the version is none.
func fromForm(r *http.Request) (draft, error) {
	serial, err := strconv.ParseInt(r.PostFormValue("serial"), 10, 64)
	d := draft{Serial: serial, Yours: texts{}, Shown: texts{}}
	for _, field := range fields {
		d.Yours[field] = tidy(r.PostFormValue(field))
		if r.PostForm.Has("shown-" + field) {
			d.Shown[field] = tidy(r.PostFormValue("shown-" + field))
		}
	}
	return d, err
}

// tidy undoes what browsers do to a text: they send the ends of lines as CR LF, and
// drop a line break at the beginning.
func tidy(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }

// invoice returns what the user wants saved, over the version that was shown.
func (d draft) invoice(id int64) (invoice, error) {
	total, err := strconv.ParseInt(d.Yours["total"], 10, 64)
	return invoice{ID: id, Serial: d.Serial, Customer: d.Yours["customer"], Total: total, Notes: d.Yours["notes"]}, err
}

// A difference is a field in which the user's invoice isn't the saved one.
type difference struct {
	Field, Yours, Theirs string
	Both                 bool // both changed it: the user has to decide
	Taken                bool // only the others changed it: theirs is taken
}

// merge returns what a user's draft becomes on top of theirs, the invoice that is saved now: a
// field that the others have changed is theirs, any other the user's. So the merged invoice can be
// saved without undoing another user's change. Where both changed a field, the differences show the
// user's text. A field that the draft doesn't say was shown counts as changed.
func merge(yours draft, theirs invoice) (merged texts, all []difference) {
	merged = theirs.texts()
	for _, field := range fields {
		d := difference{Field: field, Yours: yours.Yours[field], Theirs: merged[field]}
		shown, known := yours.Shown[field]
		switch {
		case d.Yours == tidy(d.Theirs):
			continue
		case known && tidy(d.Theirs) == shown:
			merged[field] = d.Yours
		case known && d.Yours == shown:
			d.Taken = true
		default:
			d.Both = true
		}
		all = append(all, d)
	}
	return merged, all
}
