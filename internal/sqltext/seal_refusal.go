package sqltext

import (
	"regexp"
	"slices"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// A SealRefusal is the reason for which the triggers of a seal have refused a write. NotSealed is the reason after the
// seal was removed: a constraint or triggers remain, and refuse writes that still present a token to the seal.
type SealRefusal uint8

// The refusals, in the order of their codes.
const (
	NoSealRefusal     SealRefusal = iota
	NoToken                       // the write carries no token
	StaleToken                    // the token is stale
	NotIssuable                   // the ledger hasn't issued the token
	SerialNotAdvanced             // the write doesn't increase the row's version
	NotSealed                     // the write presents a token to the seal, and the table isn't sealed
)

// SealState and SealErrno have the codes of the refusals, except PostgreSQL's NotSealed, which is a constraint
// violation. Only sqlfence uses the codes: no value that a statement writes makes the server return one. MySQL
// reserves the numbers from 50,000 to 51,999 for applications.
var (
	SealState = [...]string{NoToken: "FT001", StaleToken: "FT002", NotIssuable: "FT003", SerialNotAdvanced: "FT004"}
	SealErrno = [...]uint16{NoToken: 51001, StaleToken: 51002, NotIssuable: 51003, SerialNotAdvanced: 51004,
		NotSealed: 51005}
)

// checkViolation is PostgreSQL's SQLSTATE check_violation.
const checkViolation = "23514"

// ReadSealRefusal returns the refusal that err reports. It reads only codes, never the text, because the text may
// contain a user's input.
func ReadSealRefusal(err error) SealRefusal {
	if err == nil {
		return NoSealRefusal
	}
	state, ok, _ := dberr.PostgresError(err)
	if !ok {
		number, _ := dberr.MySQLNumber(err)
		return SealRefusal(slices.Index(SealErrno[1:], number) + 1)
	}
	if state == checkViolation && dberr.Constraint(err) == SealedPrefix {
		return NotSealed
	}
	return SealRefusal(slices.Index(SealState[1:], state) + 1)
}

var sealedPattern = regexp.MustCompile(`(?s)sqlfence: table (.+) is sealed: `)

// SealOf returns the sealed table that err names; empty if the message names none.
func SealOf(err error) string {
	if m := sealedPattern.FindStringSubmatch(err.Error()); m != nil {
		return m[1]
	}
	return ""
}
