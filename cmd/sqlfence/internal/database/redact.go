package database

import (
	"io"
	"slices"
	"strings"
)

// A Redactor writes texts for people, without the secrets that it knows. A text has to be
// passed to it in one call.
type Redactor struct {
	w       io.Writer
	secrets []string
}

// NewRedactor returns a Redactor that writes to w and knows no secrets yet.
func NewRedactor(w io.Writer) *Redactor { return &Redactor{w: w} }

// Hide adds secrets. Call it before anything is done with them.
func (r *Redactor) Hide(secrets []string) {
	r.secrets = append(r.secrets, secrets...)
	// One may be a part of another.
	slices.SortFunc(r.secrets, func(a, b string) int { return len(b) - len(a) })
}

func (r *Redactor) Write(text []byte) (int, error) {
	clean := string(text)
	for _, s := range r.secrets {
		clean = strings.ReplaceAll(clean, s, "xxxxx")
	}
	if _, err := io.WriteString(r.w, clean); err != nil {
		return 0, err
	}
	return len(text), nil
}
