package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
)

// show is for looking only: it takes no lock, and tells who has it.
func (s *service) show(w http.ResponseWriter, r *http.Request, id int64, user string) {
	s.showAs(w, r, id, user, http.StatusOK)
}

func (s *service) showAs(w http.ResponseWriter, r *http.Request, id int64, user string, status int) {
	lock, err := s.invoices.Current(r.Context(), id)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	i, err := load(r.Context(), s.db, id)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	p := page{User: user, Invoice: i}
	if lock.By != "" && lock.By != user {
		p.Holder = &lock
	}
	render(w, status, "show", p)
}

// edit takes the lock and gives the form; whoever is too late is told who has it.
func (s *service) edit(w http.ResponseWriter, r *http.Request, id int64, user string) {
	i := invoice{ID: id}
	lock, err := s.invoices.LoadLocked(r.Context(), rowlock.Edit{ID: id, User: user}, columns, i.dest()...)
	switch {
	case errors.Is(err, sqlfence.ErrLocked):
		s.showAs(w, r, id, user, http.StatusLocked)
	case err != nil:
		s.fail(w, r, err)
	default:
		i.Serial = lock.Serial
		render(w, http.StatusOK, "edit", page{User: user, Invoice: i, Lock: lock})
	}
}

// save saves over the version that the user has seen. Then the user goes on
// editing or gives the lock back.
func (s *service) save(w http.ResponseWriter, r *http.Request, id int64, user string) {
	yours, err := fromForm(r, id)
	if err != nil {
		http.Error(w, "the total is a whole number", http.StatusBadRequest)
		return
	}
	edit := rowlock.Edit{ID: id, Serial: yours.Serial, User: user}
	keep := r.PostFormValue("then") == "go on"
	var lock rowlock.Lock
	if keep {
		lock, err = s.invoices.SaveKeep(r.Context(), edit, yours.update)
	} else {
		err = s.invoices.SaveRelease(r.Context(), edit, yours.update)
	}
	switch {
	case errors.Is(err, sqlfence.ErrConflict), errors.Is(err, sqlfence.ErrLocked):
		s.compare(w, r, edit, yours)
	case err != nil:
		s.fail(w, r, err)
	case keep:
		yours.Serial = lock.Serial
		render(w, http.StatusOK, "edit", page{User: user, Invoice: yours, Lock: lock})
	default:
		http.Redirect(w, r, fmt.Sprintf("/invoices/%d", id), http.StatusSeeOther)
	}
}

// compare shows what a save would have overwritten. If nobody else is editing the
// user gets the lock, and may settle it and save on top of what is there now.
func (s *service) compare(w http.ResponseWriter, r *http.Request, edit rowlock.Edit, yours invoice) {
	theirs := invoice{ID: yours.ID}
	p := page{User: edit.User.(string)}
	lock, _, err := s.invoices.ReloadLocked(r.Context(), edit, columns, theirs.dest()...)
	var locked *sqlfence.LockedError
	switch {
	case errors.As(err, &locked):
		p.Holder = &rowlock.Lock{By: locked.By, Since: locked.Since, Expiry: locked.Expiry}
		theirs, err = load(r.Context(), s.db, yours.ID)
	case err == nil:
		theirs.Serial = lock.Serial
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	yours.Serial = theirs.Serial
	p.Invoice, p.Lock, p.Differences = yours, lock, differences(yours, theirs)
	render(w, http.StatusConflict, "compare", p)
}

// cancel gives the lock back and keeps nothing.
func (s *service) cancel(w http.ResponseWriter, r *http.Request, id int64, user string) {
	if err := s.invoices.Release(r.Context(), id, user); err != nil {
		s.fail(w, r, err)
		return
	}
	http.Redirect(w, r, fmt.Sprintf("/invoices/%d", id), http.StatusSeeOther)
}
