package rules

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// searchOwn makes the search find texts that may define or change the functions, triggers and constraints that sqlfence
// keeps in the database.
func (s *search) searchOwn(tables []render.Registered) {
	s.names.add(sqltext.OwnPrefix, noTable)
	for _, word := range ownKinds {
		s.findNamesWith(word)
	}
	if len(tables) > 0 {
		s.findNamesWith(sqltext.OwnPrefix) // sqlfence.seen
	}
}

// ownKinds are the kinds of object that a statement about sqlfence's objects names.
var ownKinds = []string{"function", "procedure", "routine", "aggregate", "trigger", "constraint",
	"language", "extension"}

// A protection plans the parts of a statement that aren't writes of rows: it refuses changes of the objects and
// settings that guards and seals depend on. Its methods with names that begin with keeps return true if the statement
// passes, and false after they have recorded a refusal in the plan.
type protection struct{ *planner }

// keepsProtected refuses a statement that changes objects or settings, other than tables, that guards and seals depend
// on.
func (p protection) keepsProtected() bool {
	return p.keepsObjects() && (len(p.Tables) == 0 || p.keepsSettings() && p.keepsSchemas()) && p.keepsEncoding() &&
		p.keepsErrors() && p.keepsClock() && p.keepsLocks()
}

// keepsObjects refuses a statement, and returns false, if the statement defines, changes or drops a function, trigger
// or constraint of sqlfence, or drops the language of sqlfence's functions.
func (p protection) keepsObjects() bool {
	if !p.mayDefine() || !p.hasWord(ownKinds...) {
		return true
	}
	code := p.Dialect.Guard.Code
	for i := p.Lo; i < p.Hi; i++ {
		name, ok := p.Name(int(i))
		if ok && (sqltext.OwnsName(name) || code != "" && name == code && p.Word(p.Lo, "drop")) {
			return p.refuseNamed(name, i, advise.OwnObject)
		}
	}
	return true
}

// mayDefine reports whether the statement may define or drop something: it does more than write and read rows, and
// isn't known to define nothing.
func (p protection) mayDefine() bool {
	return slices.ContainsFunc(p.Parts, func(part read.Part) bool {
		switch part.Kind {
		case read.UnreadablePart, read.TooDeepPart:
			return true
		case read.OtherPart:
			return part.Class != read.Reading && part.Class != read.NoRows
		}
		return false
	})
}

// hasWord reports whether the statement contains one of the words, unquoted.
func (p *planner) hasWord(words ...string) bool {
	for i := p.Lo; i < p.Hi; i++ {
		if p.Word(i, words...) {
			return true
		}
	}
	return false
}

// keepsSettings refuses a statement, and returns false, if the statement may change a setting that keeps triggers from
// firing, or from comparing tokens. A statement that only reads a setting passes.
//
//	SET name = x | ALTER ROLE y SET name = x | SELECT set_config('name', x, false) | SET @name = x
func (p protection) keepsSettings() bool {
	g := p.Dialect.Guard
	if g.Setting == nil || p.Word(p.Lo, "show", "reset") {
		return true
	}
	if g.Setters != nil && p.writesOrReads() && !p.names(g.Setters) {
		return true
	}
	for i := p.Lo; i < p.Hi; i++ {
		if name := g.Setting(&p.Scanned, i); name != "" && !p.firesTriggers(name, i) {
			return p.refuseNamed(name, i, advise.OwnSetting)
		}
		if g.DynamicSetting == nil {
			continue
		}
		if reason := g.DynamicSetting(&p.Scanned, i); reason != "" && !p.takesSetting(i) {
			return p.refuse(-1, i, advise.Code(reason))
		}
	}
	return true
}

// takesSetting reports whether the function call at token i names its setting by an argument of the statement, and
// records the argument, so that its value is checked at each execution.
//
//	SELECT set_config($1, ...)
func (p protection) takesSetting(i int32) bool {
	number, ok := p.Dialect.Guard.Argument(&p.Scanned, i)
	if ok = ok && p.writesOrReads(); ok {
		p.settings = append(p.settings, number)
	}
	return ok
}

// names reports whether the statement contains one of the names.
func (p protection) names(names []string) bool {
	for i := p.Lo; i < p.Hi; i++ {
		switch tok := &p.Tokens[i]; tok.Kind {
		case lex.Punct:
			if tok.Plain { // it holds no names
				i = tok.Mate
			}
		case lex.Word:
			if p.Word(i, names...) {
				return true
			}
		case lex.Quoted:
			if name, ok := p.Name(int(i)); ok && slices.Contains(names, name) {
				return true
			}
		}
	}
	return false
}

// firesTriggers reports whether the statement is a SET of the setting at token i to a value with which triggers fire as
// usual.
func (p protection) firesTriggers(name string, i int32) bool {
	value := strings.ToLower(strings.Trim(p.TokenText(p.Hi-1), "'"))
	return name == sqltext.TriggerSetting && p.Word(p.Lo, "set") && i+3 == p.Hi &&
		(value == "origin" || value == "local" || value == "default")
}

// keepsSchemas protects the schemas that are named in a table's registration or for the ledger, and the default schema
// for new tables. It refuses a statement that drops a protected schema with all its objects, renames a protected
// schema, or gives another schema the name of a protected schema. A statement that drops all objects of a role is
// refused as well.
//
//	DROP {SCHEMA | DATABASE} [IF EXISTS] name, name CASCADE | DROP OWNED BY role | ALTER SCHEMA name RENAME TO name
func (p protection) keepsSchemas() bool {
	g := p.Dialect.Guard
	switch {
	case p.Word(p.Lo, "alter") && p.Word(p.Lo+1, "schema") && p.Word(p.Lo+3, "rename"):
	case !p.Word(p.Lo, "drop"):
		return true
	case p.Word(p.Lo+1, "owned"):
		return p.refuse(-1, p.Lo+1, advise.OwnSchema)
	case !p.Word(p.Lo+1, "schema", "database"), g.Cascades.Is() && !p.Word(p.Hi-1, "cascade"):
		return true
	}
	_, at := p.Find(lex.Range{Lo: p.Lo + 2, Hi: p.Hi}, func(name string) int {
		if p.keepsSchema(name) {
			return 0
		}
		return -1
	})
	return at < 0 || p.refuse(-1, at, advise.OwnSchema)
}

// keepsSchema reports whether a schema is known to hold a registered table or the ledger. The case of registered
// schemas is ignored, because some MySQL servers ignore the case of names.
func (p protection) keepsSchema(name string) bool {
	return name == p.Dialect.Guard.DefaultSchema || p.Dialect.Ledger == p.Dialect.Quote(name)+"."+render.LedgerTable ||
		slices.ContainsFunc(p.Tables, func(t render.Registered) bool { return strings.EqualFold(t.Schema, name) })
}

// refuseNamed refuses a statement because of an sqlfence object other than a table.
func (p *planner) refuseNamed(name string, at int32, code advise.Code) bool {
	if p.refused == nil {
		p.refuse(-1, at, code)
		p.refused.Name = name
	}
	return false
}

// ownIn returns the name of an sqlfence function or trigger, or of a protected setting, that stands in code, even
// inside a longer word; or "".
func ownIn(code string) string {
	for i := range len(code) {
		if lex.HasPrefixFold(code[i:], sqltext.OwnPrefix) {
			behind := code[i:]
			ends := func(r rune) bool { return !strings.ContainsRune("_-:.", r) && !lex.IsNamePart(byte(r)) }
			if n := strings.IndexFunc(behind, ends); n >= 0 {
				behind = behind[:n]
			}
			if sqltext.OwnsName(behind) || sqltext.OwnsSetting(behind) {
				return behind
			}
		}
		if lex.HasPrefixFold(code[i:], sqltext.TriggerSetting) {
			return sqltext.TriggerSetting
		}
	}
	return ""
}
