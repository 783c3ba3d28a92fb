package orders_test

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A ruleset is the names of the rules of the table books, in the order of ruleNames.
type ruleset []string

// ruleNames are the rules, each with its option.
var ruleNames = []string{"RowFence", "Ledger", "Key", "Serial", "EditLock", "SingleUse", "Claim", "ClaimOf", "Sealed"}

var ruleOptions = map[string]sqlfence.Rule{
	"RowFence":  sqlfence.RowFence("fence_token"),
	"Ledger":    sqlfence.Ledger(),
	"Key":       sqlfence.Key("id"),
	"Serial":    sqlfence.Serial("serial"),
	"EditLock":  sqlfence.EditLock("editedby", "editedsince", "editedexpiry"),
	"SingleUse": sqlfence.SingleUse(),
	"Claim":     sqlfence.Claim("attempt"),
	"ClaimOf":   sqlfence.ClaimOf("jobs"),
	"Sealed":    sqlfence.Sealed(),
}

func (r ruleset) has(name string) bool { return slices.Contains(r, name) }

func (r ruleset) String() string { return strings.Join(r, " + ") }

// options returns the options with which the ruleset's database is opened.
func (r ruleset) options() []sqlfence.Option {
	var books []sqlfence.Rule
	for _, name := range r {
		books = append(books, ruleOptions[name])
	}
	opts := []sqlfence.Option{sqlfence.WithTable("books", books...)}
	if r.has("ClaimOf") {
		opts = append(opts, sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")))
	}
	return opts
}

// claims reports whether a row's claim is its token.
func (r ruleset) claims() bool { return r.has("Claim") || r.has("ClaimOf") }

// tokens reports whether writes present issued tokens.
func (r ruleset) tokens() bool { return r.has("RowFence") || r.ledger() }

// ledger reports whether writes are compared with the newest token. Key without another rule implies Ledger.
func (r ruleset) ledger() bool {
	return r.has("Ledger") || r.has("Key") && !r.has("RowFence") && !r.claims()
}

// with returns the named rules and the rules that they require, in order.
func with(names ...string) (r ruleset) {
	is := func(name string) bool { return slices.Contains(names, name) }
	if is("SingleUse") || is("Sealed") && !is("Claim") {
		names = append(names, "RowFence")
	}
	if is("Claim") {
		names = append(names, "Key")
	}
	for _, name := range ruleNames {
		if is(name) {
			r = append(r, name)
		}
	}
	return r
}

// alone reports whether r is a single rule, with the rules that this rule needs.
func (r ruleset) alone() bool {
	return slices.ContainsFunc(ruleNames, func(name string) bool { return slices.Equal(r, with(name)) })
}

// accepted reports whether sqlfence takes these rules for a table of the dialect.
func (r ruleset) accepted(d sqlfence.Dialect) bool {
	_, err := sqlfence.WrapDriver(harness.Opaque{}, append(r.options(), sqlfence.WithDialect(d))...)
	return err == nil
}

// rulesets are each rule, and each pair of rules that may be combined, with the rules that they need.
func rulesets(d sqlfence.Dialect) (all []ruleset) {
	for i, name := range ruleNames {
		all = append(all, with(name))
		for _, second := range ruleNames[i+1:] {
			all = append(all, with(name, second))
		}
	}
	seen := make(map[string]bool)
	all = slices.DeleteFunc(all, func(r ruleset) bool {
		again := seen[r.String()]
		seen[r.String()] = true
		return again || !r.accepted(d)
	})
	slices.SortStableFunc(all, func(a, b ruleset) int { return len(a) - len(b) })
	return all
}
