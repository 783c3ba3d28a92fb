package sqlfence

import (
	"testing"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/dialect"
)

func TestConstantsEqualTheCores(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"Enforce", int64(Enforce), int64(core.Enforce)},
		{"Observe", int64(Observe), int64(core.Observe)},
		{"Refused", int64(Refused), int64(core.Refused)},
		{"WouldRefuse", int64(WouldRefuse), int64(core.WouldRefuse)},
		{"Bypassed", int64(Bypassed), int64(core.Bypassed)},
		{"RawAccess", int64(RawAccess), int64(core.RawAccess)},
		{"Unfenced", int64(Unfenced), int64(core.Unfenced)},
		{"Guarded", int64(Guarded), int64(core.Guarded)},
		{"Passed", int64(Passed), int64(core.Passed)},
		{"Unanswered", int64(Unanswered), int64(core.Unanswered)},
		{"Uncached", int64(Uncached), int64(core.Uncached)},
		{"CacheHit", int64(CacheHit), int64(core.CacheHit)},
		{"CacheMiss", int64(CacheMiss), int64(core.CacheMiss)},
		{"CacheEviction", int64(CacheEviction), int64(core.CacheEviction)},
		{"Postgres", int64(Postgres), int64(dialect.Postgres)},
		{"SQLite", int64(SQLite), int64(dialect.SQLite)},
		{"MySQL", int64(MySQL), int64(dialect.MySQL)},
		{"WarnToken", WarnToken, core.WarnToken},
		{"MaxToken", MaxToken, core.MaxToken},
	} {
		if c.got != c.want {
			t.Errorf("%s is %d, and the core's is %d", c.name, c.got, c.want)
		}
	}
}
