package core

import (
	"regexp"
	"strings"
)

// A Registration is what a database was opened with, for other programs: the command line reads it.
type Registration struct {
	Dialect string       `json:"dialect"`
	Schema  string       `json:"schema,omitempty"` // of sqlfence's own tables
	Tables  []Registered `json:"tables"`
}

// A Registered is a table of a Registration. Its names are as the database stores them, so that two registrations
// of one table can be compared; its rules are those of the command line's --table, in one order.
type Registered struct {
	Table string   `json:"table"`
	Rules []string `json:"rules"`
}

// Registration returns the tables in the order of registration.
func (s *Settings) Registration() Registration {
	r := Registration{s.profile.Dialect.String(), s.schema, []Registered{}}
	for _, t := range s.tables {
		r.Tables = append(r.Tables, t.registered())
	}
	return r
}

func (t *Table) registered() Registered {
	r := Registered{Table: Written(t.spelled.Schema, t.spelled.Table), Rules: []string{}}
	if t.Rules.Pattern {
		r.Table = strings.TrimSuffix(r.Table, `"*"`) + "*"
	}
	word := func(given bool, name string, columns ...string) {
		if !given {
			return
		}
		for _, c := range columns {
			name += ":" + Written("", c)
		}
		r.Rules = append(r.Rules, name)
	}
	rules := &t.Rules
	word(rules.Exempt, "exempt")
	word(rules.FenceColumn != "", "row-fence", rules.FenceColumn)
	word(t.HasLedger(), "ledger")
	word(t.hasResource(r.Table), "resource", t.Resource)
	word(rules.Key != "", "key", rules.Key)
	word(rules.Claim != "", "claim", rules.Claim)
	word(t.ClaimOf != "", "claimof:"+Written(rules.ClaimOf.Schema, rules.ClaimOf.Name))
	word(rules.Sealed && !t.FromTransaction, "sealed")
	word(rules.Sealed && t.FromTransaction, "sealed-from-transaction")
	word(rules.SingleUse, "single-use")
	word(t.Optional, "optional")
	word(rules.UnfencedInserts, "unfenced-inserts")
	word(rules.Serial != "" && !rules.SerialRequired, "serial", rules.Serial)
	word(rules.Serial != "" && rules.SerialRequired, "required-serial", rules.Serial)
	word(rules.Lock.By != "", "edit-lock", rules.Lock.By, rules.Lock.Since, rules.Lock.Expiry)
	word(t.Mode == Observe, "observe")
	return r
}

// hasResource reports whether the table takes tokens of another name than a table registered as name would.
func (t *Table) hasResource(name string) bool {
	if t.ClaimOf != "" || !t.Rules.Ledger && t.Rules.FenceColumn == "" && t.Rules.Claim == "" {
		return false
	}
	if t.Rules.Pattern {
		return t.Resource != ""
	}
	again := Table{Name: name}
	again.Rules.Schema, again.Rules.Name = t.Rules.Schema, t.Rules.Name
	again.nameResource()
	return again.Resource != t.Resource
}

// plain are names that every database reads as they are written.
var plain = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// Written returns a name for a registration, each part in double quotes unless it is plain. schema may be empty.
func Written(schema, name string) string {
	if !plain.MatchString(name) {
		name = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	if schema == "" {
		return name
	}
	return Written("", schema) + "." + name
}
