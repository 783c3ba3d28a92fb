package database

import (
	"io"
	"regexp"
	"slices"
	"strings"
)

// A Redactor writes texts for people, without the known secrets. Pass each text in one call of Write, because Write
// doesn't find a secret that is split between two calls.
type Redactor struct {
	w       io.Writer
	secrets []string
	short   []*regexp.Regexp
}

// NewRedactor returns a Redactor that writes to w and knows no secrets yet.
func NewRedactor(w io.Writer) *Redactor { return &Redactor{w: w} }

// A secret of fewer bytes occurs in many words. So it is hidden only as a whole, after a colon, an equals sign or a
// quotation mark, as in data source names and drivers' errors.
const shortSecret = 4

// Hide adds secrets. Call Hide before the secrets are used.
func (r *Redactor) Hide(secrets []string) {
	for _, s := range secrets {
		if s == "" {
			continue
		}
		if len(s) < shortSecret {
			r.short = append(r.short, regexp.MustCompile("([:=\"'`])"+regexp.QuoteMeta(s)+"([@&\"'`\\s]|$)"))
			continue
		}
		r.secrets = append(r.secrets, s)
	}
	// Longer secrets come first, because a secret may be a part of a longer secret.
	slices.SortFunc(r.secrets, func(a, b string) int { return len(b) - len(a) })
}

func (r *Redactor) Write(text []byte) (int, error) {
	clean := string(text)
	for _, s := range r.secrets {
		clean = strings.ReplaceAll(clean, s, "xxxxx")
	}
	for _, s := range r.short {
		clean = s.ReplaceAllString(clean, "${1}xxxxx${2}")
	}
	if _, err := io.WriteString(r.w, clean); err != nil {
		return 0, err
	}
	return len(text), nil
}
