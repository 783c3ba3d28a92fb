package rules

import "github.com/sqlfence/sqlfence/internal/sql/lex"

// isWordByte holds for the bytes of words, which are those of names but $.
func isWordByte(c byte) bool { return c != '$' && lex.IsNamePart(c) }

// each has 1 in each of its bytes, top the highest bit.
const (
	each = 0x0101010101010101
	top  = 0x80 * each
)

// nameBytes returns a bit for each of the bytes of s from i on, at most 64, that is one of
// a word, the lowest for the first; and whether some are beyond ASCII. s has at least 8.
func nameBytes(s string, i int) (names uint64, wide bool) {
	n := min(64, len(s)-i)
	var all uint64
	k := 0
	for ; k+8 <= n; k += 8 {
		b := load(s, i+k)
		all |= b
		names |= wordBytes(b) << k
	}
	if k < n {
		b := load(s, len(s)-8) >> (8 * (k + 8 - n))
		all |= b
		names |= wordBytes(b) << k
	}
	return names, all&top != 0
}

// firstBytes returns those of eight bytes that are of a word of n bytes, the last one
// highest.
func firstBytes(eight uint64, n int) uint64 { return eight << (8 * (8 - min(n, 8)) & 63) }

// isNumber reports whether a word that begins with a digit and has n bytes has no others.
// Bytes that are none have this bit.
func isNumber(first uint64, n int) bool { return n <= 8 && first&(0x40*each) == 0 }

// wordBytes is nameBytes for eight bytes at once. A sum sets the highest bit of the bytes
// that are not below a bound; it doesn't carry, as they are below 0x80.
func wordBytes(b uint64) uint64 {
	ascii := b &^ top
	lower := ascii | 0x20*each
	letters := (lower + (0x80-'a')*each) &^ (lower + (0x7f-'z')*each)
	digits := (ascii + (0x80-'0')*each) &^ (ascii + (0x7f-'9')*each)
	underscores := ^((ascii ^ '_'*each) + 0x7f*each)
	// The product gathers the lowest bits of the bytes in the highest byte.
	return (letters | digits | underscores | b) & top >> 7 * 0x0102040810204080 >> 56
}

// eight returns the eight bytes of s from i on, letters in lower case. Of the bytes of
// words only letters differ by this bit.
func eight(s string, i int) uint64 { return load(s, i) | 0x20*each }

// load returns the eight bytes of s from i on, the lowest first.
func load(s string, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}
