package database

import (
	"io"
	"regexp"
	"slices"
	"strings"
)

// A Redactor writes texts for people, without the secrets that it knows. A text has to be
// passed to it in one call.
type Redactor struct {
	w       io.Writer
	secrets []string
	short   []*regexp.Regexp
}

// NewRedactor returns a Redactor that writes to w and knows no secrets yet.
func NewRedactor(w io.Writer) *Redactor { return &Redactor{w: w} }

// A secret of fewer bytes is a part of so many words that it is hidden only where a data source name or a
// driver's error has it: behind a colon, an equals sign or a quotation mark, and as a whole.
const shortSecret = 4

// Hide adds secrets. Call it before anything is done with them.
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
	// One may be a part of another.
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
