package rewrite

import (
	"math/bits"

	"github.com/sqlfence/sqlfence/rewrite/internal/lex"
)

// wordSet is a set of words of ASCII letters, digits, _ and $, which are found in either
// case. A look-up takes as long whatever the number of words: it compares hashes, and
// the bytes of the one word whose hash is that of the text's. The zero set is empty.
type wordSet struct {
	buckets  []bucket // a power of two, at least four for each word
	shift    uint     // of a hash: what is left is the index of a bucket
	words    []word
	shortest int
	longest  int
}

// A bucket holds a word's place in words, from 1 on, and some other bits of its hash than
// those by which the bucket is found.
type bucket struct{ tag, word uint32 }

type word struct {
	text string
	find finding
}

// finding is what it means that a text has a word.
type finding uint8

const (
	absent   finding = iota
	part             // it may be a part of a name
	complete         // it is one
)

// add adds a word, or raises what an earlier one means.
func (s *wordSet) add(text string, find finding) {
	if i := s.index(text, 0, len(text)); i >= 0 {
		s.words[i].find = max(s.words[i].find, find)
		return
	}
	if len(s.words) == 0 {
		s.shortest = len(text)
	}
	s.shortest, s.longest = min(s.shortest, len(text)), max(s.longest, len(text))
	s.words = append(s.words, word{text, find})
	if 4*len(s.words) > len(s.buckets) {
		s.grow()
		return
	}
	s.place(len(s.words) - 1)
}

// grow doubles the room.
func (s *wordSet) grow() {
	n := max(64, 2*len(s.buckets))
	s.buckets, s.shift = make([]bucket, n), uint(64-bits.TrailingZeros(uint(n)))
	for i := range s.words {
		s.place(i)
	}
}

func (s *wordSet) place(i int) {
	h := hash(s.words[i].text, 0, len(s.words[i].text))
	at := h >> s.shift
	for s.buckets[at].word != 0 {
		at = (at + 1) & uint64(len(s.buckets)-1)
	}
	s.buckets[at] = bucket{tag(h), uint32(i + 1)}
}

// find returns what text[i:j] means.
func (s *wordSet) find(text string, i, j int) finding {
	if n := j - i; n < s.shortest || n > s.longest {
		return absent
	}
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

func tag(h uint64) uint32 { return uint32(h >> 16) }

// hash is that of the word text[i:j] in lower case. It reads eight bytes at a time, also
// of what follows a shorter word, and leaves those out.
func hash(text string, i, j int) uint64 {
	const odd = 0x9E3779B97F4A7C15
	n := j - i
	var h uint64
	for ; j-i > 8; i += 8 {
		h = bits.RotateLeft64((h^eight(text, i))*odd, 32)
	}
	switch {
	case n > 8:
		h ^= eight(text, j-8)
	case i+8 <= len(text):
		h = eight(text, i) & (1<<(8*n) - 1)
	default:
		for k := j - 1; k >= i; k-- {
			h = h<<8 | uint64(text[k]|0x20)
		}
	}
	return (h ^ uint64(n)<<56) * odd
}

// eight returns eight bytes, letters in lower case. Of the bytes of words only letters
// differ by this bit.
func eight(s string, i int) uint64 {
	b := s[i : i+8]
	return (uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56) | 0x2020202020202020
}
