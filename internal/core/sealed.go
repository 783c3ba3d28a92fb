package core

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A sealing records how a statement writes to tables that may be sealed.
type sealing struct {
	presents bool // some table is written as sealed
	unsealed bool // some table is written as not sealed
}

// unseals reports whether the statement presents no token to a seal of t, because the pool's cache doesn't have t as
// sealed. It records the result in e.with.seals, so that a seal's error can show that the cache is outdated.
func (e *Execution) unseals(t *Table) bool {
	s := &e.with.seals
	proves := e.conn.found.IsSealed(t.spelled)
	s.unsealed, s.presents = s.unsealed || !proves, s.presents || proves
	return !proves
}

// writesSealed reports whether the statement writes to a table that may be sealed.
func (e *Execution) writesSealed() bool {
	if !e.registry.sealed {
		return false
	}
	for i := range e.plan.Tables {
		if e.table(i).Rules.Sealed {
			return true
		}
	}
	return false
}

// maySeal reports whether the statement writes to a table that may be sealed and has this name.
func (e *Execution) maySeal(name string) bool {
	return e.find(func(t *Table) bool { return t.Rules.Sealed && t.isCalled(name) }) >= 0
}

// The messages of a seal's triggers, in every database. The error code selects the pattern.
var (
	stalePattern     = regexp.MustCompile(`(?s)sqlfence: stale token (\d+) for table (.+), which has (\d+)`)
	notIssuedPattern = regexp.MustCompile(`(?s)sqlfence: token (\d+) for table (.+) is not issued, the newest is (\d+)`)
)

// isCalled reports whether the table has this name in the database.
func (t *Table) isCalled(name string) bool { return strings.EqualFold(t.Rules.Name, name) }

// refusedBySeal returns a typed error and true if a seal threw err. Otherwise it returns err unchanged, and false. A
// trigger may have executed the refused write, to another table than the statement's.
func (s *Settings) refusedBySeal(err error) (error, bool) {
	refused := sqltext.ReadSealRefusal(err)
	switch refused {
	case sqltext.NoSealRefusal, sqltext.NotSealed:
		return err, false
	case sqltext.NoToken:
		return s.unprovenWrite(sqltext.SealOf(err), err), true
	case sqltext.SerialNotAdvanced:
		table, _ := s.sealedTable(sqltext.SealOf(err))
		return &Refusal{Sentinel: ErrNoSerial, Err: err, Table: table,
			Reason: fmt.Sprintf("table %q is sealed, and the write didn't raise its serial "+
				"(docs/sealed.md)", table)}, true
	}
	says := stalePattern
	if refused == sqltext.NotIssuable {
		says = notIssuedPattern
	}
	var name string
	var token, current int64
	if m := says.FindStringSubmatch(err.Error()); m != nil { // MySQL cuts a long message
		token, name, current = number(m[1]), m[2], number(m[3])
	}
	table, resource := s.sealedTable(name)
	compared := Compared{Table: table, Token: Token{resource, token}, Current: current}
	if refused == sqltext.StaleToken {
		return s.factory.Stale(compared, err), true
	}
	return s.factory.NotIssued(compared, err), true
}

// unprovenWrite returns the error of a write that presented no token to a table's seal. If the table is registered with
// Sealed, sqlfence didn't guard the write: the write was under Bypass, or a trigger executed it.
func (s *Settings) unprovenWrite(name string, err error) error {
	registered, _ := s.sealedTable(name)
	write := "register it with Sealed"
	if errors.As(err, new(*outdated)) {
		write = "it was sealed after the pool had looked, which looks again before the next write; send it again"
	} else if slices.ContainsFunc(s.tables, func(t *Table) bool { return t.isCalled(name) && t.Rules.Sealed }) {
		write = "under Bypass, and in a trigger, assign minus the token to its fence column or claim, or unseal it first"
	}
	return &Refusal{Sentinel: ErrNoFence, Err: err, Table: registered,
		Reason: fmt.Sprintf("table %q is sealed, and the write didn't prove a token; %s (docs/sealed.md)",
			registered, write)}
}

// sealedTable returns the registered name of the table that a seal's error names, and the name of the table's tokens.
// If the table isn't registered, both are the name in the error.
func (s *Settings) sealedTable(name string) (table, resource string) {
	for _, t := range s.tables {
		if t.isCalled(name) {
			return t.Name, t.Resource
		}
	}
	return name, name
}

func number(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) // beyond int64 the result is the highest integer
	return n
}
