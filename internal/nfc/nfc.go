// Package nfc brings the names of tokens into one form.
package nfc

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// String returns s in Unicode's normalization form C, in which two spellings of one text, such as é as one or as two
// characters, are the same bytes. Invalid UTF-8 stays invalid. ASCII is unchanged.
func String(s string) string {
	if isASCII(s) {
		return s
	}
	return norm.NFC.String(s)
}

// Is reports whether s is in that form.
func Is(s string) bool { return isASCII(s) || norm.NFC.IsNormalString(s) }

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
