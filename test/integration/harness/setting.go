package harness

import (
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A Setting is a base driver at an isolation level.
type Setting struct {
	Base
	Level sql.IsolationLevel // LevelDefault for the database's own, SQLite's one and only
}

// EveryLevel has [EachSetting] run each test at every isolation level also in a short run, which else keeps to the
// level that the database begins with. It is for the TestMain of a package that holds a promise about levels.
func EveryLevel() { everyLevel = true }

var everyLevel bool

// EachSetting runs test on every base, at every level that it is run at.
func EachSetting(t *testing.T, test func(t *testing.T, s Setting)) {
	t.Helper()
	eachSetting(t, Bases, test)
}

// EachStoreSetting is EachSetting for the Stores.
func EachStoreSetting(t *testing.T, test func(t *testing.T, s Setting)) {
	t.Helper()
	eachSetting(t, Stores, test)
}

func eachSetting(t *testing.T, bases []Base, test func(t *testing.T, s Setting)) {
	t.Helper()
	each(t, bases, func(t *testing.T, b Base) {
		levels := b.dialect(t).levels
		if b.OneLevel || testing.Short() && !everyLevel && len(levels) > 0 {
			levels = []sql.IsolationLevel{b.dialect(t).level}
		}
		if len(levels) == 0 {
			test(t, Setting{b, sql.LevelDefault})
			return
		}
		for _, level := range levels {
			t.Run(level.String(), func(t *testing.T) { test(t, Setting{b, level}) })
		}
	})
}

// EachServer is EachSetting where several write at once, and a test can see who waits for whom.
func EachServer(t *testing.T, test func(t *testing.T, s Setting)) {
	t.Helper()
	EachSetting(t, func(t *testing.T, s Setting) {
		if s.dialect(t).waiters == nil {
			t.Skip("the database doesn't tell who waits")
		}
		test(t, s)
	})
}

// AsksLedgerFirst reports whether a write that waits for a row holds off the next token.
func (b Base) AsksLedgerFirst() bool { return dialects[b.Dialect].ledgerFirst }

// AsksByFunction reports whether guards can ask the ledger by a stored function.
func (b Base) AsksByFunction() bool { return dialects[b.Dialect].function }

// EachPostgres is EachSetting on PostgreSQL alone.
func EachPostgres(t *testing.T, test func(t *testing.T, s Setting)) {
	t.Helper()
	EachSetting(t, func(t *testing.T, s Setting) {
		if !s.AsksByFunction() {
			t.Skip("is about PostgreSQL")
		}
		test(t, s)
	})
}

// Fences are the two rules that compare tokens: with the row's, or with the ledger's.
var Fences = []struct {
	Name string
	Rule sqlfence.Rule
}{
	{"row fence", sqlfence.RowFence("fence_token")},
	{"ledger", sqlfence.Ledger()},
}
