package rules

import (
	"math/bits"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// wordSet is a set of words of ASCII letters, digits and _, which are found in either case. The time of a look-up
// doesn't depend on the number of words: the look-up compares hashes, and then the bytes of the only word with the
// text's hash. The zero set is empty.
type wordSet struct {
	fewer   uint     // a hash shifted right by fewer bits is the index of a bit in likely
	likely  []uint64 // a bit for the first bytes and the length of each word; at least 32 bits for each word
	buckets []bucket // the number is a power of two, at least four for each word
	shift   uint     // a hash shifted right by shift bits is the index of a bucket
	words   []word
}

// A bucket holds a word's place in words, from 1 on, and the bits of the word's hash that don't select the bucket.
type bucket struct{ tag, word uint32 }

type word struct {
	text string
	find finding
}

// finding is the meaning of a word that occurs in a text.
type finding uint8

const (
	absent   finding = iota
	part             // the word may be a part of a name
	complete         // the word is a name, or a keyword to look for
)

// add adds a word to the set. If the set has the word already, the stronger finding stays.
func (s *wordSet) add(text string, find finding) {
	if i := s.index(text, 0, len(text)); i >= 0 {
		s.words[i].find = max(s.words[i].find, find)
		return
	}
	s.words = append(s.words, word{text, find})
	if 4*len(s.words) > len(s.buckets) {
		s.grow()
		return
	}
	s.place(len(s.words) - 1)
}

// grow doubles the memory of the set.
func (s *wordSet) grow() {
	n := max(64, 2*len(s.buckets))
	s.buckets, s.shift = make([]bucket, n), uint(64-bits.TrailingZeros(uint(n)))
	s.likely, s.fewer = make([]uint64, n/8), s.shift-3
	for i := range s.words {
		s.place(i)
	}
}

func (s *wordSet) place(i int) {
	text := s.words[i].text
	bit := first(text) >> s.fewer
	s.likely[bit/64] |= 1 << (bit % 64)
	h := hash(text, 0, len(text))
	at := h >> s.shift
	for s.buckets[at].word != 0 {
		at = (at + 1) & uint64(len(s.buckets)-1)
	}
	s.buckets[at] = bucket{tag(h), uint32(i + 1)}
}

// find returns the finding of the word text[i:j]; absent if the set lacks the word.
func (s *wordSet) find(text string, i, j int) finding {
	if found := s.index(text, i, j); found >= 0 {
		return s.words[found].find
	}
	return absent
}

// index returns the place of text[i:j] among the words, or -1.
func (s *wordSet) index(text string, i, j int) int {
	if len(s.buckets) == 0 {
		return -1
	}
	h := hash(text, i, j)
	for at := h >> s.shift; ; at = (at + 1) & uint64(len(s.buckets)-1) {
		found := s.buckets[at&uint64(len(s.buckets)-1)]
		if found.word == 0 {
			return -1
		}
		if found.tag == tag(h) && lex.EqualFold(text[i:j], s.words[found.word-1].text) {
			return int(found.word - 1)
		}
	}
}

// mayHave reports whether the set may contain a word of n bytes with these first bytes.
func (s *wordSet) mayHave(first uint64, n int) bool {
	bit := spread(first, n) >> (s.fewer & 63)
	return s.likely[bit/64]>>(bit%64)&1 != 0
}

func tag(h uint64) uint32 { return uint32(h >> 16) }

// hash returns the hash of the word text[i:j] in lower case.
func hash(text string, i, j int) uint64 {
	n := j - i
	if n <= 8 {
		return first(text[i:j])
	}
	var h uint64
	for ; j-i > 8; i += 8 {
		h = bits.RotateLeft64(spread(h^eight(text, i), n), 32)
	}
	return spread(h^eight(text, j-8), n)
}

// first is the hash of the first eight bytes of a word, and of its length.
func first(word string) uint64 {
	var h uint64
	for i := range min(8, len(word)) {
		h = h>>8 | uint64(word[i]|0x20)<<56
	}
	return spread(h, len(word))
}

// spread mixes all bits of a hash and the word's length into the highest bits.
func spread(h uint64, n int) uint64 { return (h ^ uint64(n)) * 0x9E3779B97F4A7C15 }

// isWordByte reports whether a byte may belong to a word: all bytes of names except $.
func isWordByte(c byte) bool { return c != '$' && lex.IsNamePart(c) }

// each has the value 1 in each of its eight bytes, and top has the highest bit set in each.
const (
	each = 0x0101010101010101
	top  = 0x80 * each
)

// nameBytes returns a bit for each byte of s from i on, at most 64 bytes, the lowest bit for the first byte. The bit is
// set if the byte belongs to a word. wide reports whether some bytes are beyond ASCII. s has at least 8 bytes.
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

// firstBytes returns the bytes of a word of n bytes among eight bytes, the word's last byte highest.
func firstBytes(eight uint64, n int) uint64 { return eight << (8 * (8 - min(n, 8)) & 63) }

// isNumber reports whether a word of n bytes that begins with a digit has only digits. All other bytes of words have
// the bit 0x40.
func isNumber(first uint64, n int) bool { return n <= 8 && first&(0x40*each) == 0 }

// wordBytes is nameBytes for eight bytes at once. A sum sets the highest bit of each byte that isn't below a bound. The
// sum doesn't carry, because all bytes are below 0x80.
func wordBytes(b uint64) uint64 {
	ascii := b &^ top
	lower := ascii | 0x20*each
	letters := (lower + (0x80-'a')*each) &^ (lower + (0x7f-'z')*each)
	digits := (ascii + (0x80-'0')*each) &^ (ascii + (0x7f-'9')*each)
	underscores := ^((ascii ^ '_'*each) + 0x7f*each)
	// The product gathers the lowest bits of the bytes in the highest byte.
	return (letters | digits | underscores | b) & top >> 7 * 0x0102040810204080 >> 56
}

// eight returns the eight bytes of s from i on, letters in lower case. Among the bytes of words, the bit 0x20 only
// distinguishes the cases of letters.
func eight(s string, i int) uint64 { return load(s, i) | 0x20*each }

// load returns the eight bytes of s from i on, the lowest first.
func load(s string, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}
