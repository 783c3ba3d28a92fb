package sqltext

import (
	"regexp"
	"slices"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// A SealRefusal is what a seal, or what is left of one, has refused.
type SealRefusal uint8

// The refusals, in the order of their codes.
const (
	NoSealRefusal SealRefusal = iota
	NotProven                 // the write carries no token
	StaleProof                // a stale one
	NotIssuable               // one that the ledger doesn't know
	SerialKept                // the write doesn't raise the row's serial
	NotSealed                 // the write carries a proof, and the table isn't sealed
)

// SealState and SealErrno have the codes of the refusals, but for PostgreSQL's NotSealed, which is a constraint's. They
// are sqlfence's own: no value that a statement writes makes the server raise one. MySQL leaves the numbers
// from 50,000 to 51,999 to others.
var (
	SealState = [...]string{NotProven: "FT001", StaleProof: "FT002", NotIssuable: "FT003", SerialKept: "FT004"}
	SealErrno = [...]uint16{NotProven: 51001, StaleProof: 51002, NotIssuable: 51003, SerialKept: 51004,
		NotSealed: 51005}
)

// checkViolation is PostgreSQL's.
const checkViolation = "23514"

// ReadSealRefusal returns what a seal says by an error. It reads the codes alone, never the text, in which there may
// be what a user has written.
func ReadSealRefusal(err error) SealRefusal {
	if err == nil {
		return NoSealRefusal
	}
	state, ok, _ := dberr.PostgresError(err)
	if !ok {
		number, _ := dberr.MySQLNumber(err)
		return SealRefusal(slices.Index(SealErrno[1:], number) + 1)
	}
	if state == checkViolation && dberr.Constraint(err) == SealedMark {
		return NotSealed
	}
	return SealRefusal(slices.Index(SealState[1:], state) + 1)
}

var saysSealed = regexp.MustCompile(`(?s)sqlfence: table (.+) is sealed: `)

// SealOf returns the table that is sealed against the write; empty if the message doesn't name it.
func SealOf(err error) string {
	if m := saysSealed.FindStringSubmatch(err.Error()); m != nil {
		return m[1]
	}
	return ""
}
