package main

import (
	"net/http"
	"strconv"
	"strings"
)

// A draft holds a user's input, and the invoice as the user saw it: the difference shows the fields that the user has
// changed.
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

// fromForm reads the submitted form. It fails if the version is none.
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

// tidy undoes what browsers do to a text: they send the ends of lines as CR LF, and drop a line break at the beginning.
func tidy(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }

// invoice returns the invoice that the user wants to save, with the version that was shown.
func (d draft) invoice(id int64) (invoice, error) {
	total, err := strconv.ParseInt(d.Yours["total"], 10, 64)
	return invoice{ID: id, Serial: d.Serial, Customer: d.Yours["customer"], Total: total, Notes: d.Yours["notes"]}, err
}

// A difference is a field in which the user's invoice isn't the saved one.
type difference struct {
	Field, Yours, Theirs string
	Both                 bool // both changed it: the user has to decide
	Taken                bool // only another user changed it: the saved value is taken
}

// merge applies a user's draft to theirs, the invoice that is saved now: a field that another user has changed keeps
// the saved value, every other field gets the user's value. So saving the merged invoice undoes no change of another
// user. Where both changed a field, the differences show the user's text. A field without a shown value in the draft
// counts as changed.
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
