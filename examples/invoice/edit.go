package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
)

// show displays the invoice without taking the lock, and names the lock's holder.
func (s *service) show(w http.ResponseWriter, r *http.Request, id int64, user string) {
	s.showAs(w, r, id, user, http.StatusOK)
}

func (s *service) showAs(w http.ResponseWriter, r *http.Request, id int64, user string, status int) {
	lock, err := s.invoices.Current(r.Context(), id)
	if err != nil {
		s.fail(w, r, id, err)
		return
	}
	i, err := load(r.Context(), s.db, id)
	if err != nil {
		s.fail(w, r, id, err)
		return
	}
	p := page{User: user, ID: id, Saved: i.texts()}
	if lock.By != "" && lock.By != user {
		p.Holder = &lock
	}
	render(w, status, "show", p)
}

// edit takes the lock and shows the form. If another user has the lock, edit names that user.
func (s *service) edit(w http.ResponseWriter, r *http.Request, id int64, user string) {
	i := invoice{ID: id}
	lock, err := s.invoices.LoadLocked(r.Context(), rowlock.Edit{ID: id, User: user}, columns, i.dest()...)
	switch {
	case errors.Is(err, sqlfence.ErrLocked):
		s.showAs(w, r, id, user, http.StatusLocked)
	case err != nil:
		s.fail(w, r, id, err)
	default:
		i.Serial = lock.Serial
		s.form(w, http.StatusOK, user, i, lock)
	}
}

// form shows the form of an invoice that the user has locked.
func (s *service) form(w http.ResponseWriter, status int, user string, i invoice, lock rowlock.Lock) {
	shown := i.texts()
	render(w, status, "edit", page{
		User: user, ID: i.ID, Lock: s.countdown(lock), Form: draft{Serial: i.Serial, Yours: shown, Shown: shown}})
}

// save saves the user's invoice if the row still has the version that the user has seen. Then the user continues to
// edit or releases the lock.
func (s *service) save(w http.ResponseWriter, r *http.Request, id int64, user string) {
	d, err := fromForm(r)
	if err != nil {
		http.Error(w, "the version is a number", http.StatusBadRequest)
		return
	}
	yours, err := d.invoice(id)
	if err != nil {
		s.correct(w, r, id, user, d)
		return
	}
	edit := rowlock.Edit{ID: id, Serial: d.Serial, User: user}
	keep := r.PostFormValue("then") == "go on"
	var lock rowlock.Lock
	if keep {
		lock, err = s.invoices.SaveKeep(r.Context(), edit, yours.update)
	} else {
		err = s.invoices.SaveRelease(r.Context(), edit, yours.update)
	}
	switch {
	case errors.Is(err, sqlfence.ErrConflict), errors.Is(err, sqlfence.ErrLocked):
		s.compare(w, r, edit, d)
	case err != nil:
		s.fail(w, r, id, err)
	case keep:
		yours.Serial = lock.Serial
		s.form(w, http.StatusOK, user, yours, lock)
	default:
		http.Redirect(w, r, fmt.Sprintf("/invoices/%d", id), http.StatusSeeOther)
	}
}

// correct shows a form with invalid input again, with all that the user typed.
func (s *service) correct(w http.ResponseWriter, r *http.Request, id int64, user string, d draft) {
	lock, err := s.invoices.Current(r.Context(), id)
	if err != nil {
		s.fail(w, r, id, err)
		return
	}
	p := page{User: user, ID: id, Form: d, Faults: map[string]string{"total": "The total is a whole number, such as 120."}}
	switch lock.By {
	case user:
		p.Lock = s.countdown(lock)
	case "": // it has lapsed; a save takes it again
	default:
		p.Holder = &lock
	}
	render(w, http.StatusBadRequest, "edit", p)
}

// compare shows the changes that a save would have overwritten. If no other user is editing, the user gets the lock,
// and a form with both the user's and the saved changes.
func (s *service) compare(w http.ResponseWriter, r *http.Request, edit rowlock.Edit, d draft) {
	theirs := invoice{ID: edit.ID.(int64)}
	p := page{User: edit.User.(string), ID: theirs.ID, Form: d}
	lock, err := s.invoices.LoadLocked(r.Context(), edit, columns, theirs.dest()...)
	var locked *sqlfence.LockedError
	switch {
	case errors.As(err, &locked):
		p.Holder = &rowlock.Lock{By: locked.By, Since: locked.Since, Expiry: locked.Expiry}
		theirs, err = load(r.Context(), s.db, theirs.ID)
	case err == nil:
		p.Lock = s.countdown(lock)
	}
	if err != nil {
		s.fail(w, r, theirs.ID, err)
		return
	}
	merged, all := merge(d, theirs)
	p.Differences = all
	if p.Holder == nil {
		p.Form = draft{Serial: lock.Serial, Yours: merged, Shown: theirs.texts()}
	}
	render(w, http.StatusConflict, "compare", p)
}

// cancel gives the lock back and keeps nothing.
func (s *service) cancel(w http.ResponseWriter, r *http.Request, id int64, user string) {
	if err := s.invoices.Release(r.Context(), id, user); err != nil {
		s.fail(w, r, id, err)
		return
	}
	http.Redirect(w, r, fmt.Sprintf("/invoices/%d", id), http.StatusSeeOther)
}
