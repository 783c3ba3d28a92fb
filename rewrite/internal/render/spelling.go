package render

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/guard"
)

// spell returns a key in a spelling; ok is false if the key has no such spelling.
func spell(key string, s guard.Spelling) (text string, ok bool) {
	switch s {
	case guard.Number:
		return plainNumber(key)
	case guard.UUID:
		return plainUUID(key)
	}
	ascii := !strings.ContainsFunc(key, func(r rune) bool { return r >= 0x80 })
	return key, ascii == (s == guard.ASCII)
}

// plainKey returns a number or a UUID as the databases print it, and any other key without surrounding blanks.
func plainKey(key string) string {
	if plain, ok := plainNumber(key); ok {
		return plain
	} else if plain, ok := plainUUID(key); ok {
		return plain
	}
	return strings.TrimSpace(key)
}

// number and radix match the numbers that a database reads, without PostgreSQL's underscores. mostDigits limits the
// length of a number that is computed with.
var radix = regexp.MustCompile(`^[-+]?0[xXoObB][0-9a-fA-F]+$`)

var number = regexp.MustCompile(`^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,2})?$`)

const mostDigits = 60

// plainNumber returns an integer without leading zeros and the like. A number that differs from an integer only beyond
// the digits of a floating-point number is treated as the integer.
func plainNumber(key string) (plain string, ok bool) {
	key = strings.ReplaceAll(strings.TrimSpace(key), "_", "")
	switch {
	case len(key) > mostDigits:
		return "", false
	case radix.MatchString(key):
		n, ok := new(big.Int).SetString(key, 0)
		return n.String(), ok
	case !number.MatchString(key):
		return "", false
	}
	n, ok := new(big.Rat).SetString(key)
	if ok && !n.IsInt() {
		f, _ := n.Float64()
		if n.SetFloat64(f); !n.IsInt() {
			return strconv.FormatFloat(f, 'f', -1, 64), true
		}
	}
	return n.Num().String(), ok
}

// uuid matches a UUID in the forms that databases read.
var uuid = regexp.MustCompile(`^\{?[0-9a-fA-F]{4}(?:-?[0-9a-fA-F]{4}){7}\}?$`)

func plainUUID(key string) (plain string, ok bool) {
	key = strings.TrimSpace(key)
	if !uuid.MatchString(key) {
		return "", false
	}
	h := strings.ToLower(strings.NewReplacer("-", "", "{", "", "}", "").Replace(key))
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], true
}
