package core

import (
	"regexp"
	"strings"
)

// A Registration describes the registered tables of an open database to other programs, as the command line.
type Registration struct {
	Dialect string       `json:"dialect"`
	Schema  string       `json:"schema,omitempty"` // the schema of sqlfence's own tables
	Tables  []Registered `json:"tables"`
}

// A Registered is a table of a Registration. Names are as the database stores them, so that two registrations of one
// table can be compared. Rules are written as for the command line's --table, in a fixed order.
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

// hasResource reports whether the table's tokens have another name than the default for a table registered as name.
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

// plain matches names that every database reads unchanged.
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
