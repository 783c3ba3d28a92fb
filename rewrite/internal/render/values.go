package render

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Token is one fencing token of an execution.
type Token struct {
	Name  string // the token's name in the ledger
	Key   string // the key of the row that it covers, for a table with Key
	Value int64
}

// claim returns the key and the value as one text.
func (t *Token) claim() string { return t.Key + ":" + strconv.FormatInt(t.Value, 10) }

// Values are the values that a statement is rendered with.
type Values struct {
	// Tables has the tokens of each of [Plan.Tables], in that order.
	Tables []TableValues

	// Literal writes the values into the text instead of numbering placeholders, as for a statement without
	// [Plan.Params].
	Literal bool
	// Serial is the version that a versioned statement's rows must have.
	Serial int64
	// Editor is the ID, as text, of the user who writes to tables with Lock; empty if the context names no user.
	Editor string
}

// TableValues are the tokens for the writes to one table.
type TableValues struct {
	// Tokens holds one token, or one for each row with Key or ClaimOf. Tokens is empty for an Unfenced table, and for a
	// table that isn't [guard.Table.Fenced].
	Tokens []Token

	// Unfenced means that this execution's writes to a fenced table are compared with no token. In a table with Claim,
	// all targets must then be [guard.Target.Free].
	Unfenced bool

	// Unsealed means that the write presents no token to the seal of a table with Sealed, because the database isn't
	// known to have the seal, and without it the column would store the token's negative.
	Unsealed bool

	// Rows has, for each row of the Keys of the table's targets, in their order, the index in Tokens of the token that
	// covers the row. Rows can be nil for a table with one token. In a table with UnfencedInserts, -1 means a row
	// without a token.
	Rows []int
}

// check returns an error unless the values are complete for a plan to guard.
func (v *Values) check(p *Plan) error {
	switch {
	case p.Verdict == guard.Refuse:
		return &p.Refusal
	case p.Verdict != guard.Guard:
		return fmt.Errorf("rewrite: Render of a plan to %v, want one to guard", p.Verdict)
	case len(v.Tables) != len(p.Tables):
		return fmt.Errorf("rewrite: values for %d tables, but the statement writes to %d", len(v.Tables), len(p.Tables))
	}
	for i := range v.Tables {
		err := v.Tables[i].check(p, i)
		if err == nil && v.Tables[i].Unfenced && p.rules(i).Claim != "" && !p.isFree(i) {
			err = errors.New("no token for a write that has to prove claims")
		}
		if err != nil {
			return fmt.Errorf("rewrite: table %q: %w", p.rules(i).Name, err)
		}
	}
	return nil
}

// tokenOf returns the index, among the tokens of all tables, of the token with a row's key; a negative number if no
// token has it. first is the index of the table's first token. MySQL's messages show only the beginning of a long key.
// If no token has exactly this key, tokenOf returns a token with this beginning.
func (v *Values) tokenOf(first int, key string) int {
	lo, found := 0, -1
	for i := range v.Tables {
		tokens := v.Tables[i].Tokens
		if lo == first {
			for j := range tokens {
				switch {
				case tokens[j].Key == key:
					return first + j
				case found < 0 && len(key) > longKey && strings.HasPrefix(tokens[j].Key, key):
					found = first + j
				}
			}
		}
		lo += len(tokens)
	}
	return found
}

// spellingOf returns a token that may spell a row's key differently, and has a claim value other than the row's. It
// prefers a token with the same number, UUID or letters as key; otherwise it returns the oldest token.
func (v *Values) spellingOf(first int, key string, claim int64) int {
	lo, found := 0, -1
	for i := range v.Tables {
		tokens := v.Tables[i].Tokens
		for j := range tokens {
			switch {
			case lo != first || tokens[j].Value == claim:
			case strings.EqualFold(plainKey(tokens[j].Key), plainKey(key)):
				return first + j
			case found < 0 || tokens[j].Value < tokens[found-first].Value:
				found = first + j
			}
		}
		lo += len(tokens)
	}
	return found
}

// longKey is the number of bytes of a key that MySQL's messages show at least.
const longKey = 64

// check returns an error unless v is complete for the plan's table i.
func (v *TableValues) check(p *Plan, i int) error {
	rules := p.rules(i)
	switch n := len(v.Tokens); {
	case n > 0 && (v.Unfenced || !rules.Fenced()):
		return fmt.Errorf("%d tokens for a table that takes none", n)
	case n == 0 && rules.Fenced() && !v.Unfenced:
		return fmt.Errorf("no token, and Unfenced isn't set")
	case n > 1 && rules.Key == "" && !rules.ClaimsOther():
		return fmt.Errorf("%d tokens for a table without Key", n)
	case n == 1 && v.Rows == nil:
		return nil
	}
	rows := p.rows(i)
	if len(v.Tokens) > 0 && len(v.Rows) != rows {
		return fmt.Errorf("%d entries in Rows, want %d", len(v.Rows), rows)
	}
	for _, token := range v.Rows {
		if token >= len(v.Tokens) || token < 0 && !(token == guard.NoToken && rules.UnfencedInserts) {
			return fmt.Errorf("an entry of Rows is token %d of %d", token, len(v.Tokens))
		}
	}
	return nil
}

// An Arg is an argument that the guard adds to the statement's arguments.
type Arg struct {
	// Number is the argument's place among all arguments, from 1. The statement's arguments take the other places, in
	// their order.
	Number int

	// Again is the number, among the statement's arguments, of the argument to pass once more; 0 with a Value.
	Again int

	Of value // the value that the argument holds
}

// A value identifies one of the values of a rendering.
type value struct {
	Table, Token int // Token is the index among the table's tokens
	Field        field
}

// field is the part of a token, or of the values, that an argument holds.
type field uint8

const (
	fieldValue field = iota
	fieldName
	fieldKey
	fieldClaim  // key and value, with a colon between them
	fieldClaims // the claims of all of the table's tokens
	fieldTaken  // the claims and the keys of all of the table's tokens
	fieldRow    // the key, of the type of the column that it is compared with
	fieldNumber // the key as a number, a [guard.Spelling]; NULL if the key is no number
	fieldUUID
	fieldASCII
	fieldWide
	fieldSerial // [Values.Serial]
	fieldEditor // [Values.Editor]
)

// IsOfToken reports whether each token has the field.
func (f field) IsOfToken() bool { return f < fieldSerial }

// sqlType returns the type of the field's placeholder.
func (f field) sqlType() sqltext.Type {
	switch f {
	case fieldValue, fieldSerial:
		return sqltext.Bigint
	case fieldRow, fieldClaims, fieldTaken:
		return sqltext.Untyped
	}
	return sqltext.Text
}

// Value returns the argument's value in v: an int64 or a string. v must be the values that the statement was rendered
// with. For [Plan.Default], v must have one token for each fenced table. Value returns nil for NULL, and for an
// argument that is passed Again.
func (a Arg) Value(v *Values) any {
	if a.Again > 0 {
		return nil
	}
	switch a.Of.Field {
	case fieldSerial:
		return v.Serial
	case fieldEditor:
		return strings.Clone(v.Editor) // so that v itself needn't be allocated on the heap
	}
	tokens := v.Tables[a.Of.Table].Tokens
	t := &tokens[a.Of.Token]
	switch a.Of.Field {
	case fieldName:
		return t.Name
	case fieldKey, fieldRow:
		return t.Key
	case fieldClaim:
		return t.claim()
	case fieldClaims, fieldTaken:
		return presented(tokens, a.Of.Field == fieldTaken)
	case fieldNumber, fieldUUID, fieldASCII, fieldWide:
		if text, ok := spell(t.Key, guard.Spelling(a.Of.Field-fieldNumber)); ok {
			return text
		}
		return nil
	}
	return t.Value
}

// presented returns the tokens' claims as the names of a JSON object, in which the databases look up a claim without
// reading the whole object. named adds each token's value under its key and a colon, as "01:": 5, and, if the key isn't
// spelled plainly, under the plain spelling and :#, as "1:#": 5.
func presented(tokens []Token, named bool) string {
	b := make([]byte, 0, 48*len(tokens)+2)
	for i := range tokens {
		b = append(b, separators[min(i, 1)])
		b = append(b, '"')
		b = appendQuoted(b, tokens[i].Key)
		b = append(b, ':')
		b = strconv.AppendInt(b, tokens[i].Value, 10)
		b = append(b, `":0`...)
		if named {
			b = append(b, `,"`...)
			b = appendQuoted(b, tokens[i].Key)
			b = append(b, `:":`...)
			b = strconv.AppendInt(b, tokens[i].Value, 10)
			if plain := plainKey(tokens[i].Key); plain != tokens[i].Key {
				b = append(b, `,"`...)
				b = appendQuoted(b, plain)
				b = append(b, `:#":`...)
				b = strconv.AppendInt(b, tokens[i].Value, 10)
			}
		}
	}
	return string(append(b, '}'))
}

const separators = "{,"

// appendQuoted appends s as the content of a quoted JSON string, without the quotes.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return b
}
